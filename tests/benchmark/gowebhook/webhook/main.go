// A conversion webhook for two versions of a CronTab, written by hand: the reference of the benchmark.
//
// It is what a Go author would write for these two versions: types, encoding/json, net/http. It keeps nothing
// aside and proves nothing; only the objects of the benchmark are converted without loss.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"time"
)

const maxBytes = 64 << 20

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID     string            `json:"uid"`
	Desired string            `json:"desiredAPIVersion"`
	Objects []json.RawMessage `json:"objects"`
}

type response struct {
	UID       string `json:"uid"`
	Converted []any  `json:"convertedObjects"`
	Result    status `json:"result"`
}

type status struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9443", "address")
	certificate := flag.String("tls-cert-file", "", "certificate, in PEM")
	key := flag.String("tls-private-key-file", "", "its key, in PEM")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc("POST /convert/{name}", serve)
	server := &http.Server{
		Addr:              *listen,
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       120 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
	}
	log.Fatal(server.ListenAndServeTLS(*certificate, *key))
}

func serve(w http.ResponseWriter, r *http.Request) {
	body, err := read(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked review
	if err := json.Unmarshal(body, &asked); err != nil || asked.Request == nil {
		http.Error(w, fmt.Sprintf("no ConversionReview: %v", err), http.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(review{APIVersion: asked.APIVersion, Kind: asked.Kind, Response: answered(asked.Request)})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	if _, err := w.Write(answer); err != nil {
		log.Print(err)
	}
}

// read returns the whole body, into a buffer of its size where that is told.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, maxBytes)
	if r.ContentLength < 0 || r.ContentLength > maxBytes {
		return io.ReadAll(limited)
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(limited, body)
	return body, err
}

func answered(asked *request) *response {
	converted := make([]any, 0, len(asked.Objects))
	for i, object := range asked.Objects {
		made, err := convert(object, asked.Desired)
		if err != nil {
			return &response{
				UID:       asked.UID,
				Converted: []any{},
				Result:    status{Status: "Failed", Message: fmt.Sprintf("object %d: %v", i, err)},
			}
		}
		converted = append(converted, made)
	}
	return &response{UID: asked.UID, Converted: converted, Result: status{Status: "Success"}}
}
