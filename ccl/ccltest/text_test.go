package ccltest

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
)

// beyond slices beyond the end of its output.
func beyond(c *ccl.Call) error {
	_ = c.Out().Slice(0, c.Out().Len()+1)
	return nil
}

// A panic is shown with the lines of the kernel that led to it, and no others.
func TestPanicText(t *testing.T) {
	err := completes(subjectOf(ccl.CollAllReduce, before(beyond)), poll, 2)
	if err == nil {
		t.Fatal("it passes")
	}
	want := regexp.MustCompile(`^the kernel has no Supports, so it has to do every shape; this one failed: rank \d of 2: all_reduce of .* panicked at text_test\.go:\d+: .*` +
		`\n  in github\.com/goccl/goccl/ccl/ccltest\.beyond, \S+text_test\.go:\d+` +
		`\n  in github\.com/goccl/goccl/ccl/ccltest\.\S+, \S+_test\.go:\d+$`)
	if !want.MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
}

// A panic is reported also if another rank was the first to fail.
func TestPanicBeforeConsequence(t *testing.T) {
	for range 20 {
		err := completes(subjectOf(ccl.CollBroadcast, overreaching()), poll, 3)
		if err == nil {
			t.Fatal("it passes")
		}
		if first, _, _ := strings.Cut(err.Error(), "\n"); !strings.Contains(first, "panicked at mutants_messages_test.go:") {
			t.Errorf("%v", err)
		}
	}
}

// What three checks judge is done once.
func TestCallsAreMadeOnce(t *testing.T) {
	var runs atomic.Int64
	s := subjectOf(ccl.CollAllReduce, before(func(*ccl.Call) error {
		runs.Add(1)
		return nil
	}))
	if err := completes(s, poll, 2); err != nil {
		t.Error(err)
	}
	once := runs.Load()
	if err := messages(s, poll, 2); err != nil || once == 0 || runs.Load() != once {
		t.Errorf("%d runs, and then %d: %v", once, runs.Load(), err)
	}
	if err := messages(s, park, 2); err != nil || runs.Load() == once {
		t.Errorf("other calls are not made: %v", err)
	}
}

// A kernel that does not come back is shown by its own stacks, after the rule.
func TestHangText(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	s := subjectOf(ccl.CollAllReduce, waiting(stop))
	hangs(s)
	s.patience = time.Second // the kernel never returns
	err := completes(s, poll, 2)
	if !stuck(err) {
		t.Fatalf("the error is %v", err)
	}
	report := failure(err, checkNamed("Completes"), "TestA/b")
	before, after, found := strings.Cut(report, "\ngoroutines in the kernel:\n")
	if !found || !strings.Contains(before, "\nrule: Completes: ") || !strings.Contains(before, "\nagain: ") ||
		!strings.Contains(before, "rank 1 is in its kernel, outside of verbs") {
		t.Errorf("before the stacks there is\n%s", before)
	}
	if strings.Count(after, "1 goroutine, chan receive:") != 1 || !strings.Contains(after, "mutants_messages_test.go:") || strings.Contains(after, "(*group).each") {
		t.Errorf("the stacks are\n%s", after)
	}
}

// A kernel that comes back after the others have given up is shown where they waited for it.
func TestLateText(t *testing.T) {
	gaveUp := make(chan struct{})
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() == 0 {
			defer close(gaveUp)
			return c.Recv(1, c.Out())
		}
		<-gaveUp
		return c.Send(0, c.Out())
	}
	s := subjectOf(ccl.CollBroadcast, k)
	hangs(s)
	text := failure(messages(s, poll, 2), checkNamed("Messages"), "TestA/b")
	want := regexp.MustCompile(`rank 1 .*, and was in its kernel, outside of verbs, when another rank's wait timed out\n(.*\n)*` +
		`goroutines in the kernel:\n  1 goroutine, chan receive:\n    \S+TestLateText\S+, \S+text_test\.go:\d+\n`)
	if !want.MatchString(text) {
		t.Error(text)
	}
}

// The place of a kernel that waits or panics inside the standard library is its own line.
func TestPlaceBelowTheLibrary(t *testing.T) {
	input, output := io.Pipe()
	defer output.Close()
	s := subjectOf(ccl.CollAllReduce, before(func(c *ccl.Call) error {
		if c.Rank() == 1 {
			return json.NewDecoder(input).Decode(new(int))
		}
		return nil
	}))
	hangs(s)
	s.patience = time.Second
	text := failure(completes(s, poll, 2), checkNamed("Completes"), "TestA/b")
	if !regexp.MustCompile(`\n  1 goroutine, select:\n    \S+TestPlaceBelowTheLibrary\S+, \S+text_test\.go:\d+\n`).MatchString(text) {
		t.Error(text)
	}
	err := completes(subjectOf(ccl.CollAllReduce, before(func(c *ccl.Call) error {
		_ = strings.Repeat("x", -c.Size())
		return nil
	})), poll, 2)
	if err == nil || !regexp.MustCompile(`panicked at text_test\.go:\d+: strings: .*\n  in \S+TestPlaceBelowTheLibrary`).MatchString(err.Error()) {
		t.Error(err)
	}
}

// Common mistakes about averages are called by their names.
func TestEpilogueText(t *testing.T) {
	for f, want := range map[fault]string{noEpilogue: "Epilogue was not called", twoEpilogues: "Epilogue was called twice", wrongBlock: ""} {
		err := results(subjectOf(ccl.CollAllReduce, ringReduceKernel(f)), poll, 2)
		if err == nil || !strings.Contains(err.Error(), want) || want == "" && strings.Contains(err.Error(), "Epilogue") {
			t.Errorf("a kernel that %s: %v", f, err)
		}
	}
}

// A wrong Cost is shown for all numbers of ranks that the kernel supports.
func TestCostText(t *testing.T) {
	for _, test := range []struct {
		kernel *ccl.Kernel
		want   string
	}{
		{ringReduceKernel(none), `
all_reduce of float32, sum of 840 elements:
  Ranks    Bytes    Total    steps  declared    bytes  declared
      2     3360     3360        2         1     6720      3360
      3     3360     3360        4         1    13440      3360
      4     3360     3360        6         1    20160      3360
      5     3360     3360        8         1    26880      3360
      6     3360     3360       10         1    33600      3360
      7     3360     3360       12         1    40320      3360
      8     3360     3360       14         1    47040      3360`},
		{doublingReduceKernel(none), `
all_reduce of float32, sum of 840 elements:
  Ranks    Bytes    Total    steps  declared    bytes  declared
      2     3360     3360        1         1     6720      3360
      4     3360     3360        2         1    26880      3360
      8     3360     3360        3         1    80640      3360`},
	} {
		test.kernel.Cost = func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: 1, Bytes: s.Bytes} }
		err := costs(subjectOf(ccl.CollAllReduce, test.kernel), poll, 2)
		if err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%v\ninstead of%s", err, test.want)
		}
	}
	// Where that is right the table is of the call that failed.
	eager := viewReduceKernel(none)
	eager.Cost = func(s ccl.Shape) ccl.Cost {
		s.Eager = false
		return viewReduceCost(s)
	}
	err := costs(subjectOf(ccl.CollAllReduce, eager), poll, 2)
	if err == nil || !strings.Contains(err.Error(), "\n      3        4        4        0         1        0        16\n") {
		t.Errorf("%v", err)
	}
}

// In errors the algorithm has its own name, if ccl.yaml could have an entry of it.
func TestEntryName(t *testing.T) {
	for name, want := range map[string]string{
		"ring2": "ring2", "two_level": "two_level", "auto": "subject", "My Ring": "subject", `a": {}`: "subject", "": "subject", "true": "true",
	} {
		s := subjectOf(ccl.CollAllReduce, ringReduceKernel(none))
		s.algorithm.Name = name
		if got := s.entry(); got != want {
			t.Errorf("%q is called %q", name, got)
		}
		if name == "" {
			continue
		}
		if _, err := s.settings(2, nil); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
