package ccltest

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// calls makes calls of all calls.Kinds, without checking their results, and returns their error.
// It makes them once for three checks, each of which judges the error by its own rule.
func (s *subject) calls(w medium, n int) error {
	key := fmt.Sprintf("%s/%d/%dx%d", w.name, n, s.w, s.h)
	err, made := s.made[key]
	if made {
		return err
	}
	err = s.with(w, n, probe{lingers: true}, func(g *group) error {
		return g.run(g.pick(60, g.jobs()), func(attempt) error { return nil })
	})
	s.made[key] = err
	return err
}

// completes leaves mismatched messages to the next check, and refused calls to the one after
// that.
func completes(s *subject, w medium, n int) error {
	err := s.calls(w, n)
	switch blame(err) {
	case "Messages":
		return &skipped{why: "messages do not match, which is for Messages", rest: true}
	case "Supports":
		return nil
	}
	return s.supposed(err)
}

func messages(s *subject, w medium, n int) error {
	err := s.calls(w, n)
	if kind := blame(err); kind == "Completes" || kind == "Supports" {
		return nil
	}
	return err
}

// blame returns the name of the check whose rule a call breaks that ends with err; "" if none.
func blame(err error) string {
	_, skip := errors.AsType[*skipped](err)
	_, panicked := errors.AsType[*ccl.KernelPanicError](err)
	_, disagree := errors.AsType[*ccl.MismatchError](err)
	switch {
	case err == nil || skip:
		return ""
	// The call breaks a rule.
	case panicked || errors.Is(err, errHangs):
		return "Completes"
	case astray(err):
		return "Messages"
	case disagree || errors.Is(err, ccl.ErrNotImplemented):
		return "Supports"
	}
	return "Completes"
}

// supposed adds to the error of a call why it should not have failed or been refused.
func (s *subject) supposed(err error) error {
	what, kind := "failed", blame(err)
	switch {
	case errors.Is(err, errHangs):
		what = "did not end"
	case kind == "Supports":
		what = "was refused"
	case kind != "Completes":
		return err
	}

	if s.kernel().Supports == nil {
		return fmt.Errorf("the kernel has no Supports, so it has to do every shape; this one %s: %w", what, err)
	}
	return fmt.Errorf("the kernel's Supports does not refuse this shape, but it %s: %w", what, err)
}

// astray reports whether err means that a message was not the expected one, or that ranks
// wait for each other forever.
func astray(err error) bool {
	_, protocol := errors.AsType[*transport.ProtocolError](err)
	return protocol || stuck(err)
}

// stuck reports whether err means that a kernel hangs.
func stuck(err error) bool {
	_, timeout := errors.AsType[*transport.TimeoutError](err)
	return timeout || errors.Is(err, errHangs)
}
