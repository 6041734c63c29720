//go:build prometheus

package tool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/metrics"
)

// accepts fails unless promtool accepts a text, without a remark.
func accepts(t *testing.T, text string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	c.Stdin = strings.NewReader(text)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, text)
	require.Empty(t, string(out), text)
}

// promtool accepts labels of any text.
func TestPrometheusLabels(t *testing.T) {
	for _, name := range []string{"pair", `a"b\c`, "x\ny", `\n`, `"},`, "\xff\xfe", "a\r\x00b", "日本", "{a=\"b\"} 1\n# TYPE x counter"} {
		var b strings.Builder
		counters := []flight.Counter{{Collective: name, Calls: 1 << 60, Duration: time.Hour}}
		job := &metrics.Job{Run: name, Node: "0", Host: name, Ranks: []flight.Rank{{Counters: counters, Groups: []flight.GroupCalls{{Name: name, Counters: counters}}}}}
		require.NoError(t, metrics.Write(&b, job))
		accepts(t, b.String())
	}
}

// startPrometheus starts a Prometheus that scrapes an address each second, and returns its own address.
func startPrometheus(t *testing.T, target string) (address string) {
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: goccl, static_configs: [{targets: ['%s']}]}]\n", target), 0o600))
	address = freeEndpoint(t)
	c := exec.CommandContext(t.Context(), "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	var log bytes.Buffer
	c.Stderr = &log
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		err := c.Wait()
		if t.Failed() {
			t.Log(err, log.String())
		}
	})
	return address
}

// answer is what Prometheus answers to a query: the value of each series, by its rank.
func answer(address, query string) (map[string]string, error) {
	r, err := http.Get("http://" + address + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var d struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil || d.Status != "success" {
		return nil, fmt.Errorf("%s %s: %w", d.Status, d.Error, err)
	}
	values := map[string]string{}
	for _, s := range d.Data.Result {
		values[s.Metric["rank"]] = fmt.Sprint(s.Value[1])
	}
	return values, nil
}

// While eight ranks run, promtool accepts what is served, a Prometheus scrapes it, and it answers
// queries by rank and all of the dashboard.
func TestPrometheus(t *testing.T) {
	job := startFollowerWith(t, func(c *exec.Cmd) io.Reader {
		c.Stderr = nil
		stderr, err := c.StderrPipe()
		require.NoError(t, err)
		return stderr
	}, "-n", "8", "--metrics", "127.0.0.1:0")
	line, err := bufio.NewReader(job.output).ReadString('\n')
	require.NoError(t, err)
	target := regexp.MustCompile(`^goccl: metrics at http://(127\.0\.0\.1:\d+)/metrics\n$`).FindStringSubmatch(line)
	require.NotNil(t, target, line)
	ended := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		for {
			select {
			case <-time.After(20 * time.Millisecond):
				_, _ = job.stdin.Write([]byte("x")) // the ranks may have ended
			case <-ended:
				return
			}
		}
	}()

	read := func() string {
		r, err := http.Get("http://" + target[1] + "/metrics")
		if err != nil {
			return ""
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	shows(t, read, `goccl_calls_total{rank="7",group="default",collective="broadcast",node="0"} `, `goccl_step_seconds{rank="7",`)
	accepts(t, read())

	prometheus := startPrometheus(t, target[1])
	ask := func(query string, isEnough func(map[string]string) bool) {
		var last map[string]string
		var err error
		require.Eventually(t, func() bool {
			last, err = answer(prometheus, query)
			return err == nil && isEnough(last)
		}, time.Minute, 200*time.Millisecond, "%s", query)
		t.Log(query, last, err)
	}
	ask("sum by (rank) (rate(goccl_calls_total[10s])) > 0", func(v map[string]string) bool { return len(v) == 8 })
	ask(`sum by (rank) (goccl_rank_info{rank="3"})`, func(v map[string]string) bool { return v["3"] == "1" })

	dashboard, err := os.ReadFile("../../../examples/deploy/dashboard.json")
	require.NoError(t, err)
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(dashboard, &d))
	require.NotEmpty(t, d.Panels)
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			ask(strings.NewReplacer("$instance", ".*", "$run", ".*", "$__rate_interval", "10s").Replace(target.Expr), func(v map[string]string) bool { return len(v) > 0 })
		}
	}

	close(ended)
	<-written
	require.NoError(t, job.stdin.Close())
	_, _ = io.Copy(io.Discard, job.output) // to its end
	require.NoError(t, job.Wait())
}
