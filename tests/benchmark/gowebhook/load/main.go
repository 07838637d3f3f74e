// Sends requests over some kept-alive TLS connections, each one after the other on its connection, and measures
// each answer. It spends as little as it can: the requests are ready as bytes, and of an answer only what tells
// its end is read. HTTP/1.1, which is what an API server speaks to the webhook of a Service.
//
// Standard input is JSON (see the type load), standard output too (see the type report).
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

type load struct {
	Address    string   `json:"address"`    // HOST:PORT
	ServerName string   `json:"serverName"` // that the certificate is for
	CA         string   `json:"ca"`         // in PEM
	Requests   [][]byte `json:"requests"`   // whole ones, with their heads; in turns
	AtOnce     int      `json:"atOnce"`     // connections
	Warm       float64  `json:"warm"`       // seconds before those that count
	Seconds    float64  `json:"seconds"`    // that count
	Reconnect  bool     `json:"reconnect"`  // a new connection for each request
}

type report struct {
	Seconds   float64   `json:"seconds"`   // from the first request that counts to the last answer
	Answers   int       `json:"answers"`   // in that time
	Bytes     int64     `json:"bytes"`     // of their bodies
	Latencies []float64 `json:"latencies"` // seconds, sorted
}

type connection struct {
	tls    *tls.Conn
	reader *bufio.Reader
}

func main() {
	var work load
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(work.CA)) {
		log.Fatal("no certificate in ca")
	}
	config := &tls.Config{RootCAs: roots, ServerName: work.ServerName, NextProtos: []string{"http/1.1"}}
	begin := time.Now().Add(time.Duration(work.Warm * float64(time.Second)))
	end := begin.Add(time.Duration(work.Seconds * float64(time.Second)))
	reports := make([]report, work.AtOnce)
	var all sync.WaitGroup
	for i := range reports {
		all.Go(func() {
			if err := reports[i].fill(&work, config, i, begin, end); err != nil {
				log.Fatal(err)
			}
		})
	}
	// Tells the one who measures us when to read the meters.
	time.Sleep(time.Until(begin))
	fmt.Fprintln(os.Stderr, "begin")
	all.Wait()
	fmt.Fprintln(os.Stderr, "end")
	total := report{Seconds: time.Since(begin).Seconds()}
	for _, each := range reports {
		total.Answers += each.Answers
		total.Bytes += each.Bytes
		total.Latencies = append(total.Latencies, each.Latencies...)
	}
	slices.Sort(total.Latencies)
	if err := json.NewEncoder(os.Stdout).Encode(total); err != nil {
		log.Fatal(err)
	}
}

// fill works until the end on one connection at a time, and until one answer counts: to a request sent after the
// begin.
func (r *report) fill(work *load, config *tls.Config, first int, begin, end time.Time) error {
	var current *connection
	for i := first; ; i++ {
		sent := time.Now()
		if sent.After(end) && r.Answers > 0 {
			return nil
		}
		if current == nil {
			fresh, err := connect(work.Address, config)
			if err != nil {
				return err
			}
			current = fresh
		}
		size, last, err := current.exchange(work.Requests[i%len(work.Requests)])
		if err != nil {
			return err
		}
		if !sent.Before(begin) {
			r.Answers++
			r.Bytes += size
			r.Latencies = append(r.Latencies, time.Since(sent).Seconds())
		}
		if last || work.Reconnect {
			current.tls.Close()
			current = nil
		}
	}
}

func connect(address string, config *tls.Config) (*connection, error) {
	plain, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(plain, config)
	return &connection{secured, bufio.NewReaderSize(secured, 64<<10)}, secured.Handshake()
}

// exchange returns the size of the answer's body, and whether it was the last one of the connection.
func (c *connection) exchange(request []byte) (size int64, last bool, err error) {
	if _, err := c.tls.Write(request); err != nil {
		return 0, false, err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return 0, false, fmt.Errorf("%s: %s", answer.Status, text)
	}
	size, err = io.Copy(io.Discard, answer.Body)
	return size, answer.Close, err
}
