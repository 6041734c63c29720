package dist_test

import (
	"context"
	"expvar"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/goccl/goccl/dist"
)

// A program serves its metrics for Prometheus.
func ExampleWriteMetrics() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		_ = dist.WriteMetrics(w) // the reader may have gone
	})
	// go http.ListenAndServe("127.0.0.1:9400", mux)

	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithMetrics()); err != nil {
			return err
		}
		if err := dist.AllReduce([]float32{1, 2}, dist.Sum); err != nil {
			return err
		}

		if rank == 0 {
			read := httptest.NewRecorder()
			mux.ServeHTTP(read, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			for line := range strings.Lines(read.Body.String()) {
				if strings.HasPrefix(line, `goccl_call_bytes_total{rank="0"`) {
					fmt.Print(line)
				}
			}
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(2))
	if err != nil {
		log.Fatal(err)
	}
	// Output: goccl_call_bytes_total{rank="0",group="default",collective="all_reduce"} 8
}

// Package expvar shows metrics as JSON at /debug/vars, once they are published.
func ExampleMetrics() {
	metrics := expvar.Func(func() any { return dist.Metrics() })
	// expvar.Publish("goccl", metrics)

	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithMetrics()); err != nil {
			return err
		}
		if err := dist.Barrier(); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(strings.Contains(metrics.String(), `"goccl_calls_total{rank=\"0\",group=\"default\",collective=\"barrier\"}":1`))
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(2))
	if err != nil {
		log.Fatal(err)
	}
	// Output: true
}
