//go:build interleave

package seeds

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// runFaults runs a program of calls, messages and groups on goroutines, in which one thing goes
// wrong.
func runFaults(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	return newJob(seed, 20).runFault(t, o)
}

func (j *job) runFault(t *testing.T, o interleave.Options) (interleave.Result, error) {
	j.setTrap()
	o.IsLate = j.fault.way == wayTimes
	if j.isPatient() {
		o.Patience = patience
	}
	return j.run(t, o)
}

// isPatient reports whether no timeout falls due in the job.
func (j *job) isPatient() bool {
	return !slices.Contains([]way{wayTimes, wayStalls, waySleeps, wayOverlaps}, j.fault.way)
}

// run runs a job, and returns what is wrong with how it has ended.
func (j *job) run(t *testing.T, o interleave.Options) (interleave.Result, error) {
	a := auditor{job: j}
	var eps endpoints
	r := interleave.Run(t, o, func() {
		for rank := range j.ranks {
			a.players = append(a.players, j.newPlayer(rank))
		}
		if f := &j.fault; f.step > 0 {
			interleave.At(f.step, func() {
				interleave.SetLabel(label(f.rank))
				a.players[f.rank].strike()
			})
		}
		if f := &j.second; f.step > 0 {
			interleave.At(f.step, func() {
				interleave.SetLabel(label(f.rank))
				a.players[f.rank].strikeSecond()
			})
		}
		endpoints := eps.watch(local.NewWaiting(j.ranks, j.waiting))
		each(endpoints, func(rank int, ep transport.Endpoint) {
			if a.players[rank].open(ep) {
				a.players[rank].play()
			}
		})

		each(endpoints, func(rank int, _ transport.Endpoint) { a.players[rank].close(j.groups) })
		for _, p := range a.players {
			p.cancel()
			for _, look := range p.looks {
				look()
			}
		}
	})
	if r.Finding != nil {
		r.Finding.Text += "\n" + j.text()
		return r, nil
	}
	return r, errors.Join(a.check(), eps.check())
}

// open makes the group of all ranks.
func (p *player) open(ep transport.Endpoint) (ok bool) {
	c, err := p.join(ep)
	p.note(&event{what: join, group: p.job.groups[0]}, "join", 0, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.comms[0] = c
	return err == nil
}

// auditor says what is wrong with how a job has ended.
type auditor struct {
	job     *job
	players []*player
	errs    []error
}

func (a *auditor) check() error {
	if a.job.fault.way == wayOpPanics {
		a.setPanicked()
	}
	for _, p := range a.players {
		a.errs = append(a.errs, p.wrongs...)
		for _, o := range p.outcomes {
			for _, err := range o.parts() {
				if why := a.misexplained(o, err); why != "" {
					a.wrong("names", o, why)
				}
			}
			a.checkCounted(p, o)
		}
	}
	for _, g := range a.job.groups {
		a.checkAgreement(g)
	}
	a.checkMessages()
	a.checkTaken()
	a.checkFormed()
	a.checkCause()
	a.checkRefused()

	if len(a.errs) == 0 {
		return nil
	}
	const most = 6
	if n := len(a.errs) - most; n > 0 {
		a.errs = append(a.errs[:most], fmt.Errorf("and %d more", n))
	}
	return errors.Join(append([]error{errors.New(a.job.text())}, a.errs...)...)
}
