//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport/tcp"
)

// A breach is what happens on the net: a process is killed or stands still, or a link is cut.
type breach struct {
	rank, other int // other: the link to it is cut; otherwise -1
	step        int
	stall       time.Duration
	bury        time.Duration // from a death until the connections end
}

func drawBreaches(r *rand.Rand, ranks int) (all []breach) {
	for range []int{0, 1, 1, 1, 2}[r.IntN(5)] {
		b := breach{rank: r.IntN(ranks), other: -1, step: 200 << r.IntN(7)}
		b.step += r.IntN(b.step)
		switch r.IntN(6) {
		case 0:
			b.stall = time.Duration(1 + r.IntN(int(callTimeout/2)))
		case 1:
			b.stall = 5 * callTimeout
		case 2:
			b.other = (b.rank + 1 + r.IntN(ranks-1)) % ranks
		default:
			b.bury = time.Duration(r.IntN(int(200*time.Millisecond))) * time.Duration(r.IntN(2))
		}
		all = append(all, b)
	}
	return all
}

// isAbout reports whether an error may name a rank because of the breach.
func (b breach) isAbout(rank int) bool {
	return b.rank == rank && (b.stall == 0 || b.stall > callTimeout) || b.other == rank
}

// runPackets runs a program of calls and messages on processes that a net connects, which leave, die
// and stand still, and whose links are cut.
func runPackets(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	d := drawFor(seed)
	ranks := 2 + d.IntN(3)
	p := stress.NewDepartures(seed, stress.Options{Ranks: ranks, Events: 10, Longest: []int{40, 20_000}[d.IntN(2)], Algorithms: []string{"direct", "ring"}},
		stress.Close, stress.Close, stress.Abort)
	d.setProcessors()
	breaches := drawBreaches(d.Rand, ranks)
	delay := []time.Duration{0, time.Millisecond, 10 * time.Millisecond}[d.IntN(3)]

	settings, err := processesConfig.Resolve(config.Request{Ranks: ranks, Timeout: callTimeout})
	if err != nil {
		return interleave.Result{}, err
	}
	o.Limit = 5_000_000 // timeouts fall due, several in a program
	net := tcp.NewNet(ranks, delay)
	all := make([]*process, ranks)
	r := interleave.Run(t, o, func() {
		for rank := range all {
			all[rank] = &process{label: label(rank), account: p.NewAccount(rank), ended: make(chan struct{})}
			interleave.SetLabel(all[rank].label) // it may be killed before its first step
			interleave.Go(func() { all[rank].runOn(net, rank, settings, p) })
		}
		interleave.SetLabel("")
		for _, b := range breaches {
			interleave.At(b.step, func() { b.happen(net, p, all) })
		}
		for _, q := range all {
			interleave.Receive(q.ended)
		}
		for _, q := range all {
			if !q.isDead {
				q.account.Settle(0)
			}
		}
	})
	if r.Finding != nil {
		return r, nil
	}
	if err = checkPackets(p, all, breaches); err != nil {
		err = fmt.Errorf("%d ranks, %+v, delay %v: %w", ranks, breaches, delay, err)
	}
	return r, err
}

func (q *process) runOn(net *tcp.Net, rank int, s *config.Settings, p *stress.Departures) {
	defer q.end(false)
	within, stop := interleave.WithTimeout(context.Background(), 3*callTimeout)
	defer stop()
	ep, err := net.Join(within, rank)
	if q.err = err; err != nil {
		return
	}

	c, err := ccl.New(context.Background(), ep, ccl.WithSelector(s))
	if err == nil {
		q.hasJoined = true
		_, err = p.Run(context.Background(), c, stress.Exits{Account: q.account})
	}
	q.err = err
	ends, stopEnd := interleave.WithTimeout(context.Background(), time.Second)
	defer stopEnd()
	net.Leave(ends, rank)
}

func (b breach) happen(net *tcp.Net, p *stress.Departures, all []*process) {
	q := all[b.rank]
	switch {
	case q.isEnded:
	case b.other >= 0: // each of them may be named, by all
		q.account.CutOff()
		all[b.other].account.CutOff()
		net.Cut(b.rank, b.other)
	case b.stall > 0:
		if b.stall > callTimeout {
			q.account.Stall()
		}
		interleave.Stall(q.label, b.stall)
	default:
		interleave.Kill(q.label)
		p.Kill(q.account)
		interleave.Sleep(b.bury)
		net.Bury(b.rank)
		q.end(true)
	}
}

// checkPackets checks how processes have ended.
func checkPackets(p *stress.Departures, all []*process, breaches []breach) error {
	accounts := make([]*stress.Account, len(all))
	for rank, q := range all {
		accounts[rank] = q.account
	}
	isFaulty := func(rank int) bool {
		return all[rank].isDead || all[rank].err != nil || slices.ContainsFunc(breaches, func(b breach) bool { return b.isAbout(rank) })
	}
	errs := []error{p.Check(accounts)}
	for rank, q := range all {
		errs = append(errs, q.wrong)
		isAbout := slices.ContainsFunc(breaches, func(b breach) bool { return b.isAbout(rank) })
		if q.err != nil && !q.isDead && !isAbout && (len(breaches) == 0 || !q.hasJoined && !slices.ContainsFunc(namedRanks(q.err), isFaulty)) {
			errs = append(errs, fmt.Errorf("rank %d, before the program: %w", rank, q.err))
		}
	}
	return errors.Join(errs...)
}
