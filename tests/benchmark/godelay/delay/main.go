// Delay forwards TCP connections, and delivers all bytes later, in each direction by the same time.
//
// It delays bytes, not connections: as on a long line, many can be on their way at once.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"time"
)

const (
	chunk = 64 << 10
	// onTheWay bounds what a direction holds: at 64 KiB each, 32 MiB.
	onTheWay = 512
)

type piece struct {
	due   time.Time
	bytes []byte
}

func main() {
	listen := flag.String("listen", "", "address to listen at")
	target := flag.String("target", "", "address to forward to")
	delay := flag.Duration("delay", 0, "of each direction")
	flag.Parse()

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go forward(client, *target, *delay)
	}
}

func forward(client net.Conn, target string, delay time.Duration) {
	server, err := net.Dial("tcp", target)
	if err != nil {
		client.Close()
		return
	}
	go carry(client, server, delay)
	carry(server, client, delay)
}

// carry ends the other end's input where this one ends, after all that came before.
func carry(from, to net.Conn, delay time.Duration) {
	pieces := make(chan piece, onTheWay)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, chunk)
			n, err := from.Read(buffer)
			if n > 0 {
				pieces <- piece{time.Now().Add(delay), buffer[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for each := range pieces {
		time.Sleep(time.Until(each.due))
		if _, err := to.Write(each.bytes); err != nil {
			break
		}
	}
	// Nobody reads any more what is left: the reader must not wait for ever.
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	from.(io.Closer).Close()
	for range pieces {
	}
}
