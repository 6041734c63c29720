//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// endpoints are the endpoints of a job, watched for uses after they were freed.
type endpoints struct {
	all   [64]*watched
	count int
	errs  []error
}

// watched is an endpoint of goroutines that notes who uses it.
type watched struct {
	transport.Endpoint
	in       *endpoints
	name     string // of its rank and group
	users    int
	isClosed bool
	isFreed  bool
}

// watch returns the endpoints of all ranks, each watched.
func (e *endpoints) watch(of []transport.Endpoint) []transport.Endpoint {
	eps := make([]transport.Endpoint, len(of))
	for rank, ep := range of {
		eps[rank] = e.add(ep, fmt.Sprintf("rank %d", rank))
	}
	return eps
}

// add watches an endpoint. It does not use append, whose runtime functions the race detector sees.
//
//go:norace
func (e *endpoints) add(ep transport.Endpoint, name string) *watched {
	w := &watched{Endpoint: ep, in: e, name: name}
	e.all[e.count] = w
	e.count++
	return w
}

// check returns what was wrong. All ranks have closed their communicators.
func (e *endpoints) check() error {
	for _, w := range e.all[:e.count] {
		if !w.isFreed {
			e.errs = append(e.errs, fmt.Errorf("memory: the endpoint of %s was never freed", w.name))
		}
	}
	return errors.Join(e.errs...)
}

func (w *watched) report(what string) {
	if len(w.in.errs) < 4 {
		w.in.errs = append(w.in.errs, fmt.Errorf("memory: the endpoint of %s %s", w.name, what))
	}
}

// use notes a use of the endpoint until done is called.
//
//go:norace
func (w *watched) use(method string) (done func()) {
	if w.isFreed {
		w.report("was used after it was freed, by " + method)
	}
	w.users++
	return w.endUse
}

//go:norace
func (w *watched) endUse() { w.users-- }

func (w *watched) Enter(e *transport.Arrival) (transport.Role, error) {
	defer w.use("Enter")()
	return w.Endpoint.Enter(e)
}

func (w *watched) Claim() (rank int, ok bool) {
	defer w.use("Claim")()
	return w.Endpoint.Claim()
}

func (w *watched) Release(failed bool) error {
	defer w.use("Release")()
	return w.Endpoint.Release(failed)
}

func (w *watched) Complete() error {
	defer w.use("Complete")()
	return w.Endpoint.Complete()
}

func (w *watched) Fail(f *transport.Failure) *transport.Failure {
	defer w.use("Fail")()
	return w.Endpoint.Fail(f)
}

func (w *watched) Failed() bool {
	defer w.use("Failed")()
	return w.Endpoint.Failed()
}

func (w *watched) Failure() *transport.Failure {
	defer w.use("Failure")()
	return w.Endpoint.Failure()
}

func (w *watched) Conclude(isFormed bool) bool {
	defer w.use("Conclude")()
	return w.Endpoint.Conclude(isFormed)
}

func (w *watched) Withdraw() (ended bool) {
	defer w.use("Withdraw")()
	return w.Endpoint.Withdraw()
}

func (w *watched) Reject(seq uint64, why string) {
	defer w.use("Reject")()
	w.Endpoint.Reject(seq, why)
}

//go:norace
func (w *watched) Close() error {
	defer w.use("Close")()
	err := w.Endpoint.Close()
	w.isClosed = true
	return err
}

//go:norace
func (w *watched) Free() error {
	switch {
	case w.isFreed:
		w.report("was freed twice")
	case !w.isClosed:
		w.report("was freed before it was closed")
	case w.users > 0:
		w.report("was freed while it was used")
	}
	w.isFreed = true
	return w.Endpoint.Free()
}

// Group implements transport.Groups.
func (w *watched) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	defer w.use("Group")()
	ep, err := w.Endpoint.(transport.Groups).Group(ctx, number, members)
	if err != nil {
		return nil, err
	}
	return w.in.add(ep, fmt.Sprintf("rank %d of group %v", ep.Rank(), members)), nil
}

// Records implements transport.Recorder.
func (w *watched) Records() (transport.Records, error) {
	defer w.use("Records")()
	return w.Endpoint.(transport.Recorder).Records()
}

func (w *watched) P2P() transport.P2P { return &watchedP2P{w.Endpoint.P2P(), w} }

// watchedP2P is the P2P of a watched endpoint.
type watchedP2P struct {
	transport.P2P
	of *watched
}

func (p *watchedP2P) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	defer p.of.use("TryPut")()
	return p.P2P.TryPut(to, m)
}

func (p *watchedP2P) TryNext(from int) (view transport.Message, ok bool, err error) {
	defer p.of.use("TryNext")()
	return p.P2P.TryNext(from)
}

func (p *watchedP2P) Take(from int) {
	defer p.of.use("Take")()
	p.P2P.Take(from)
}

func (p *watchedP2P) TryWithdraw(to int) (taken, ok bool) {
	defer p.of.use("TryWithdraw")()
	return p.P2P.TryWithdraw(to)
}

func (p *watchedP2P) Rest(ready func() bool, noSpin bool) {
	defer p.of.use("Rest")()
	p.P2P.Rest(ready, noSpin)
}

func (p *watchedP2P) Wake() {
	defer p.of.use("Wake")()
	p.P2P.Wake()
}

func (p *watchedP2P) WaitFor(peer int) {
	defer p.of.use("WaitFor")()
	p.P2P.WaitFor(peer)
}

func (p *watchedP2P) Lost(peer int) error {
	defer p.of.use("Lost")()
	return p.P2P.Lost(peer)
}
