package ccltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/internal/verbs"
)

// chart is the messages of a call: the transfers of each rank, in their order.
type chart struct{ ranks [][]exchange }

// exchange is a transfer with what became of its messages. Steps are those of ccl.Cost: a message
// comes one step after the last message that its sender has sent or received before.
type exchange struct {
	verbs.Transfer
	sentAt, gotAt  int       // steps of its messages; a message that is not sent has no step
	source, target *exchange // the transfer that sends what this one receives, and the one that receives what it sends
}

// chart returns the messages of the last call, nil if it had none.
func (g *group) chart() *chart {
	c := &chart{ranks: make([][]exchange, len(g.ranks))}
	messages := 0
	for i, r := range g.ranks {
		r.trace.mu.Lock()
		for _, t := range r.trace.transfers {
			c.ranks[i] = append(c.ranks[i], exchange{Transfer: t})
		}
		r.trace.mu.Unlock()
		messages += len(c.ranks[i])
	}

	if messages == 0 {
		return nil
	}
	c.pair()
	c.time()
	return c
}

// pair finds the receiver of each message: those between two ranks are received in their order.
func (c *chart) pair() {
	type route struct{ from, to int }
	sends := make(map[route][]*exchange)
	for r := range c.ranks {
		for i := range c.ranks[r] {
			if x := &c.ranks[r][i]; x.To != verbs.None {
				way := route{r, x.To}
				sends[way] = append(sends[way], x)
			}
		}
	}

	for r := range c.ranks {
		for i := range c.ranks[r] {
			x := &c.ranks[r][i]
			way := route{x.From, r}
			if x.From != verbs.None && len(sends[way]) > 0 {
				x.source = sends[way][0]
				x.source.target = x
				sends[way] = sends[way][1:]
			}
		}
	}
}

// time counts the steps.
func (c *chart) time() {
	clocks, done := make([]int, len(c.ranks)), make([]int, len(c.ranks))
	depart := func(r int) { // the next transfer of r sends its message as soon as r comes to it
		if done[r] < len(c.ranks[r]) && c.ranks[r][done[r]].To != verbs.None {
			c.ranks[r][done[r]].sentAt = clocks[r] + 1
		}
	}
	for r := range c.ranks {
		depart(r)
	}

	for moved := true; moved; {
		moved = false

		for r, all := range c.ranks {
			for done[r] < len(all) {
				x := &all[done[r]]
				if x.source != nil && x.source.sentAt == 0 {
					break
				}
				if x.source != nil {
					x.gotAt = x.source.sentAt
				}

				clocks[r] = max(clocks[r], x.sentAt, x.gotAt)
				done[r]++
				depart(r)
				moved = true
			}
		}
	}
}

func (c *chart) steps() int {
	last := 0
	for _, all := range c.ranks {
		for i := range all {
			last = max(last, all[i].sentAt, all[i].gotAt)
		}
	}
	return last
}

// lost and starved report whether no rank receives what a transfer sends, or sends what it
// receives.
func (x *exchange) lost() bool    { return x.To != verbs.None && x.target == nil }
func (x *exchange) starved() bool { return x.From != verbs.None && x.source == nil }

// uneven reports whether the message that a transfer receives has another length than it expects.
func (x *exchange) uneven() bool { return x.source != nil && x.source.Sent.Len() != x.Received.Len() }

func (x *exchange) odd() bool { return x.lost() || x.starved() || x.uneven() }

func (x *exchange) String() string {
	var parts []string
	if x.To != verbs.None {
		text := fmt.Sprintf("%v to %d", x.Sent, x.To)
		if x.lost() {
			text += " (NOT RECEIVED)"
		}
		parts = append(parts, text)
	}

	if x.From != verbs.None {
		text := fmt.Sprintf("%v from %d", x.Received, x.From)
		switch {
		case x.starved():
			text += " (NOT SENT)"
		case x.uneven():
			text += fmt.Sprintf(" (IT SENDS %v)", x.source.Sent)
		}
		parts = append(parts, text)
	}

	step := "?"
	if at := max(x.sentAt, x.gotAt); at > 0 {
		step = fmt.Sprint(at)
	}
	return fmt.Sprintf("%4s  %-14s  %s", step, x.Verb(), strings.Join(parts, ", "))
}

// The text of a chart has at most mostRows ranks, and of each at most its first and its last
// mostEnds transfers.
const (
	mostRows = 8
	mostEnds = 6
)

// text lists the messages rank by rank. Of many ranks it shows those whose messages do not match
// first.
func (c *chart) text() string {
	var shown []int
	for _, odd := range []bool{true, false} {
		for r, all := range c.ranks {
			is := slices.ContainsFunc(all, func(x exchange) bool { return x.odd() })
			if is == odd && len(shown) < mostRows {
				shown = append(shown, r)
			}
		}
	}

	slices.Sort(shown)
	var b strings.Builder
	b.WriteString("messages of the call, by rank: step, verb, elements of which buffer\n")

	for _, r := range shown {
		all := c.ranks[r]
		fmt.Fprintf(&b, "  rank %d\n", r)
		for i := range all {
			switch {
			case i < mostEnds || i >= len(all)-mostEnds:
				fmt.Fprintf(&b, "  %v\n", &all[i])
			case i == mostEnds:
				fmt.Fprintf(&b, "        ... %d more\n", len(all)-2*mostEnds)
			}
		}

		if len(all) == 0 {
			b.WriteString("        none\n")
		}
	}
	if more := len(c.ranks) - len(shown); more > 0 {
		fmt.Fprintf(&b, "  ... %d more ranks\n", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
