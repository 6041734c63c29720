package ccltest

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/internal/verbs"
	"github.com/goccl/goccl/test/calls"
)

// chartOf returns the messages of a call with four elements, on four ranks.
func chartOf(t *testing.T, s *subject) *chart {
	t.Helper()
	hangs(s)
	var messages *chart
	err := s.with(poll, 4, probe{}, func(g *group) error {
		j := g.newCall(ccl.Float32, ccl.Sum, 4, 0)
		_ = g.run([]*calls.Call{j}, attempt.Right) // pick of these kernels fail
		messages = g.chart()
		return nil
	})
	if err != nil || messages == nil {
		t.Fatalf("%v, %v", messages, err)
	}
	return messages
}

// The pictures of the guide are what a failure draws.
func TestPictures(t *testing.T) {
	for file, draw := range map[string]func() string{
		"messages.svg": func() string {
			return chartOf(t, subjectOf(ccl.CollAllReduce, doublingReduceKernel(none))).draw("an all-reduce by doubling: 2 steps, 8 messages of 4 elements")
		},
		"messages-failed.svg": func() string {
			return chartOf(t, subjectOf(ccl.CollBroadcast, chainKernel(fullCircle))).draw("a broadcast along a chain that sends one message too many")
		},
	} {
		path := filepath.Join("../../docs/images", file)
		got := draw()
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what the code draws: make generate", file)
		}
	}
}

// A picture has an arrow for each message, red where it is not received, not sent, or of another
// length, and is the same in every run.
func TestDraw(t *testing.T) {
	uneven := func() *chart {
		send := verbs.Transfer{To: 1, From: verbs.None, Sent: verbs.Part{Buffer: "in", Hi: 1}}
		recv := verbs.Transfer{To: verbs.None, From: 0, Received: verbs.Part{Buffer: "out", Lo: 1, Hi: 4}}
		c := &chart{ranks: [][]exchange{{{Transfer: send}}, {{Transfer: recv}}}}
		c.pair()
		c.time()
		return c
	}
	of := func(coll ccl.Collective, k *ccl.Kernel) func() *chart {
		return func() *chart { return chartOf(t, subjectOf(coll, k)) }
	}
	for _, test := range []struct {
		chart              func() *chart
		arrows, red, steps int
		label              string
	}{
		{of(ccl.CollAllReduce, doublingReduceKernel(none)), 8, 0, 2, "in[0:4]"},
		{of(ccl.CollBroadcast, chainKernel(fullCircle)), 4, 1, 4, "out[0:4], not received"},
		{of(ccl.CollAllReduce, ringReduceKernel(wrongPeer)), 8, 8, 1, "out[3:4], not sent"},
		{uneven, 1, 1, 1, "in[0:1], for out[1:4]"},
	} {
		got := test.chart().draw("a <title>")
		for what, want := range map[string]int{
			`marker-end=`:            test.arrows,
			`marker-end="url(#odd)"`: test.red,
			`#555">step `:            test.steps,
			"<title>step ":           test.arrows,
			"a &lt;title&gt;":        1,
		} {
			if n := strings.Count(got, what); n != want {
				t.Errorf("%d times %s instead of %d in\n%s", n, what, want, got)
			}
		}
		if !strings.Contains(got, ">"+test.label+"<") {
			t.Errorf("no label %s in\n%s", test.label, got)
		}
		if again := test.chart().draw("a <title>"); again != got {
			t.Error("it draws something else in another run")
		}
		for d := xml.NewDecoder(strings.NewReader(got)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, got)
			}
		}
	}
}

// The steps of a chart are those that Traffic counts.
func TestChartCountsSteps(t *testing.T) {
	for name, s := range map[string]*subject{
		"ring":     subjectOf(ccl.CollAllReduce, ringReduceKernel(none)),
		"doubling": subjectOf(ccl.CollAllReduce, doublingReduceKernel(none)),
		"chain":    subjectOf(ccl.CollBroadcast, chainKernel(none)),
		"parts":    subjectOf(ccl.CollBroadcast, inPartsKernel(3, 2, none)),
		"gather":   subjectOf(ccl.CollGather, linearGather(none)),
		"scatter":  subjectOf(ccl.CollScatter, linearScatter(none)),
	} {
		m := newMeter(s, 4)
		err := s.with(poll, 4, probe{observe: m.see}, func(g *group) error {
			if err := g.run([]*calls.Call{g.newCall(ccl.Float32, ccl.Sum, 8, 0)}, attempt.Right); err != nil {
				return err
			}
			if got, want := g.chart().steps(), m.total().Steps; got != want {
				t.Errorf("%s: %d steps instead of %d:\n%s", name, got, want, g.chart().text())
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
