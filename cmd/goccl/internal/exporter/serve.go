package exporter

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/internal/metrics"
)

// Limits of readers.
const (
	readerTime = 10 * time.Second // for a request, and for its answer
	readers    = 32               // connections at a time: each takes a descriptor of the launcher
)

// serve answers requests for /metrics until the function that it returns is called.
func serve(l net.Listener, write Write) (stop func() error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		_ = write(&b, "") // a buffer takes everything
		w.Header().Set("Content-Type", metrics.ContentType)
		_, _ = w.Write(b.Bytes()) // the reader may have gone
	})

	var open atomic.Int32
	s := &http.Server{
		Handler: mux, ReadTimeout: readerTime, WriteTimeout: readerTime, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if open.Add(1) > readers {
					_ = c.Close() // the reader sees it
				}
			case http.StateClosed:
				open.Add(-1)
			}
		},
	}

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // until stop
	}()
	return func() error {
		err := s.Close() // also closes all connections
		_ = l.Close()    // if Serve had not begun
		<-ended
		return err
	}
}
