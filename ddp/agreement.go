package ddp

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/failure"
)

// presence is what ranks tell each other of themselves.
type presence struct {
	Debug   bool
	Process string
	Memory  []memory
}

// compareArguments returns the same error on all ranks, unless their arguments are right and the
// same. It returns whether New makes the gradients, and whether a rank has debug.
func compareArguments(ctx context.Context, group *dist.ProcessGroup, params []Parameter, opts *Options) (views, isDebug bool, err error) {
	comm := group.Communicator()
	views, mistake := checkArguments(params, opts)
	if mistake == nil {
		mistake = opts.checkLogicalShards(comm)
	}

	selector := comm.Selector()
	here := presence{Debug: selector != nil && selector.Debug(), Process: process()}
	var facts []agree.Fact
	if mistake == nil {
		here.Memory = listMemory(params, opts.Buffers)
		facts = describe(params, views, opts)
	}
	all, err := dist.AllGatherObject(here, dist.WithGroup(group), dist.WithContext(ctx), dist.WithKey("ddp.New"))
	if err != nil {
		return false, false, inCall(err)
	}

	err = agree.Compare(ctx, comm, mistake, facts, ccl.WithLabel("ddp.New"), ccl.WithKey("ddp.New"))
	if rejected, ok := errors.AsType[*agree.RejectedError](err); ok {
		why := rejected.Error()
		if len(rejected.Ranks) == comm.Size() {
			why = rejected.Err.Error()
		}
		return false, false, &failure.SharedError{Err: invalid("ddp.New", "%s", why), Ranks: rejected.Ranks}
	}
	if err != nil {
		return false, false, inCall(err)
	}

	if overlap, ranks := findOverlap(all, group.Ranks()); overlap != "" {
		return false, false, &failure.SharedError{Err: invalid("ddp.New", "%s", overlap), Ranks: ranks}
	}
	for _, p := range all {
		isDebug = isDebug || p.Debug
	}
	return views, isDebug, nil
}

// describe returns what all ranks must have in common.
func describe(params []Parameter, views bool, opts *Options) (facts []agree.Fact) {
	add := func(value string, name string, args ...any) {
		facts = append(facts, agree.Fact{Name: fmt.Sprintf(name, args...), Value: value})
	}
	for i, p := range params {
		add(p.tensor.text(), "parameter %d", i)
	}

	form := "the program's own"
	if views {
		form = "parts of buckets"
	}
	add(form, "form of gradients")
	facts = append(facts, opts.shared()...)
	for i, b := range opts.Buffers {
		add(b.text(), "buffer %d", i)
	}
	return facts
}

// difference returns the facts that differ between ranks, if that is the error of agree.Compare.
func difference(err error) *ccl.MismatchError {
	m, _ := err.(*ccl.MismatchError) //nolint:errorlint // one that is wrapped is the failure of the call itself
	return m
}
