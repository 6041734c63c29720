package transporttest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
)

func TestNaive(t *testing.T) {
	for name, kind := range map[string]naiveKind{
		"shared memory":                        {},
		"shared memory, last arriver runs all": {parks: true},
		"copies":                               {copies: true},
	} {
		t.Run(name, func(t *testing.T) {
			Test(t, func(_ testing.TB, ranks int) []transport.Endpoint { return endpoints(newNaive(ranks, kind), nil) })
		})
	}
}

// endpoints returns what wrap, unless nil, makes of each endpoint.
func endpoints(naives []*naive, wrap func(ep *naive) transport.Endpoint) []transport.Endpoint {
	eps := make([]transport.Endpoint, len(naives))
	for i, ep := range naives {
		if eps[i] = ep; wrap != nil {
			eps[i] = wrap(ep)
		}
	}
	return eps
}

// TestBroken lets checks meet the broken transports that they have to catch.
func TestBroken(t *testing.T) {
	for _, b := range slices.Concat(brokenTransports, brokenP2P) {
		t.Run(strings.ReplaceAll(b.check, "/", ".")+" "+b.what, func(t *testing.T) {
			if b.races && raceDetector {
				t.Skip("the race detector catches this one, and would fail the test with it")
			}
			err := b.meet(checkNamed(t, b.check))
			if err == nil {
				t.Fatal("not caught")
			}
			if !strings.Contains(err.Error(), b.says) || b.hangs && !errors.Is(err, errHung) {
				t.Fatalf("caught for another reason than %q (hangs %v): %v", b.says, b.hangs, err)
			}
		})
	}
}

// meet runs a check on a broken transport, for few ranks.
func (b *broken) meet(c *check) error {
	h := &harness{
		open:     func(ranks int) []transport.Endpoint { return endpoints(newNaive(ranks, b.kind), b.wrap) },
		patience: 10 * time.Second,
	}
	if b.hangs || strings.HasSuffix(b.check, "Leaks") {
		h.patience = 100 * time.Millisecond // they use all of it
	}
	for _, n := range c.ranks {
		if h.size = n; n <= 4 {
			if err := c.on(h, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNamed(t *testing.T, name string) *check {
	for i := range checks {
		if checks[i].name == name {
			return &checks[i]
		}
	}
	t.Fatalf("no check is called %q", name)
	return nil
}

// TestEveryCheckCatches makes sure that no check is useless.
func TestEveryCheckCatches(t *testing.T) {
	caught := map[string]bool{}
	for _, b := range slices.Concat(brokenTransports, brokenP2P) {
		caught[b.check] = true
	}
	for _, c := range checks {
		if !caught[c.name] {
			t.Errorf("check %q: it catches no broken transport", c.name)
		}
	}
}

// TestExceptionsNameWaits makes sure that no exception has lost its wait.
func TestExceptionsNameWaits(t *testing.T) {
	for _, table := range []map[cell]outcome{exceptions, reachedExceptions} {
		for c := range table {
			if !slices.ContainsFunc(waits, func(wt wait) bool { return wt.name == c.wait }) {
				t.Errorf("no wait is called %q", c.wait)
			}
		}
	}
}
