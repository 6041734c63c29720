package ccltest

import (
	"errors"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// messages makes calls, and judges nothing but whether messages find each other.
// Kernels that fail otherwise are for the checks that follow.
func messages(s *subject, w world, n int) error {
	return s.with(w, n, probe{}, func(g *group) error {
		jobs := g.jobs()
		if s.short {
			jobs = every(2, jobs)
		}
		err := g.run(jobs, func(attempt) error { return nil })
		if _, skip := errors.AsType[*skipped](err); skip || astray(err) {
			return err
		}
		return nil
	})
}

// astray reports whether err says that a message was not the one expected, or that
// ranks wait for each other in vain.
func astray(err error) bool {
	_, protocol := errors.AsType[*transport.ProtocolError](err)
	return protocol || stuck(err)
}

// stuck reports whether err says that a kernel hangs.
func stuck(err error) bool {
	_, timeout := errors.AsType[*ccl.TimeoutError](err)
	return timeout || errors.Is(err, errHangs)
}
