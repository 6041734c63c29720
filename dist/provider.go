package dist

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"

	// Registers the transport of goroutines.
	_ "github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
	"github.com/goccl/goccl/transport/tcp"
)

// auto chooses the transport by what the ranks are.
const auto = "auto"

// joinBy connects ranks by p; tests replace it.
var joinBy = func(ctx context.Context, p transport.Provider, j *transport.Job) ([]transport.Endpoint, error) {
	return p.Join(ctx, j)
}

// described describes the job's ranks to a transport.
func (j *job) described() *transport.Job {
	l := j.launched
	if l == nil {
		return &transport.Job{Size: j.size, Origin: j.from}
	}
	return &transport.Job{
		Size: l.Size, Launched: true, Rank: l.Rank, Origin: l.String(), Apart: l.Apart, Key: l.Key, Secret: l.Secret,
	}
}

// choose returns the named transport, for "auto" the first that is for the ranks of the job. If
// there is none, the error of "auto" is the one of shm or, on several nodes, of tcp, which connect
// processes in every program.
func (j *job) choose(name string) (transport.Provider, error) {
	described := j.described()
	if name == auto {
		for _, p := range transport.Providers() {
			if isFirst, err := p.Detect(described); isFirst && err == nil {
				return p, nil
			}
		}
		if name = shm.Name; described.Apart != "" {
			name = tcp.Name
		}
	}

	p, err := transport.Lookup(name)
	if err == nil {
		_, err = p.Detect(described)
	}
	if missing, ok := errors.AsType[*transport.NotAvailableError](err); ok {
		err = j.notAvailable(missing)
	}
	if err != nil {
		return transport.Provider{}, err
	}
	return p, nil
}

// notAvailable returns ccl's error for a transport that cannot connect the job's ranks, with
// those that can.
func (j *job) notAvailable(e *transport.NotAvailableError) error {
	described := j.described()
	var others []string
	for _, p := range transport.Providers() {
		if _, err := p.Detect(described); err == nil && p.Name != e.Transport {
			others = append(others, p.Name)
		}
	}
	return &BackendNotAvailableError{Requested: e.Transport, Available: others, Reason: e.Reason}
}

// canConnect returns an error if no transport of the program can connect the ranks of a launcher's
// job.
func canConnect(l *launchenv.Job) error {
	j := &job{launched: l}
	described := j.described()
	if slices.ContainsFunc(transport.Providers(), func(p transport.Provider) bool { _, err := p.Detect(described); return err == nil }) {
		return nil
	}
	_, err := j.choose(auto)
	return err
}

// requested returns the transport that option, or else GOCCL_TRANSPORT, names for the job; its
// Name is "" if neither names one. It needs no configuration.
func (j *job) requested(option string) (p transport.Provider, err error) {
	if err := config.CheckTransport(option, os.Getenv); err != nil {
		return p, err
	}
	name := cmp.Or(option, os.Getenv("GOCCL_TRANSPORT"))
	if name == "" {
		return p, nil
	}

	if p, err = j.choose(name); err != nil && name != auto {
		at := config.Error{File: "environment", Key: "GOCCL_TRANSPORT", Message: err.Error(), Err: err}
		if option != "" {
			at.File, at.Key = "option", "defaults.transport"
		}
		err = &at
	}
	return p, err
}

// isUnavailable reports whether err says that a transport cannot be used here.
func isUnavailable(err error) bool {
	_, is := errors.AsType[*BackendNotAvailableError](err)
	return is
}
