package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// CallOption is an option of a single call. Later options override earlier ones.
type CallOption struct {
	group     *ProcessGroup
	grouped   bool
	ctx       context.Context
	timeout   time.Duration
	algorithm string
	label     string
	key       string
	limit     int // of objects, in bytes
}

// WithGroup makes the call act on g, from any goroutine. If g is nil the call returns
// *InvalidArgumentError, if g was destroyed ErrNotInitialized.
func WithGroup(g *ProcessGroup) CallOption { return CallOption{group: g, grouped: true} }

// WithContext ends the call when ctx is done, with ctx's error and its cause
// (context.Cause): errors.Is finds both. If the call was waiting, the group fails
// on all ranks. Without it, or if ctx is nil, the call uses the context of WithSpawnContext.
func WithContext(ctx context.Context) CallOption { return CallOption{ctx: ctx} }

// WithCallTimeout overrides the configured timeout for one call. 0 is ignored. Ranks may use
// different timeouts.
//
// A negative d waits forever; a collective, or a receive from AnySource, then warns as often as the
// configured timeout passes (WithLogger).
func WithCallTimeout(d time.Duration) CallOption { return CallOption{timeout: d} }

// WithCallAlgorithm chooses an entry of ccl.yaml's algorithms for this call, the same
// on all ranks. With the empty name ccl.yaml chooses.
func WithCallAlgorithm(entry string) CallOption { return CallOption{algorithm: entry} }

// WithLabel gives the call a name of the program's own, such as "grads of block 3", which
// its errors and warnings show. Ranks may use different labels; with defaults.debug each
// rank warns of those (WithLogger).
func WithLabel(label string) CallOption { return CallOption{label: label} }

// WithKey says which calls of the ranks belong together: those with equal keys, such as the name of
// a parameter.
//
// If ranks enter a call with different keys, or some without one, all get *MismatchError, field
// "key", and no buffer has been touched. So a loop over a map, whose order differs from rank to
// rank, is an error where it would mix sums.
//
// Messages, which have tags, ignore the option.
func WithKey(key string) CallOption { return CallOption{key: key} }

func merge(opts []CallOption) (o CallOption) {
	for i := range opts {
		add := &opts[i]
		if add.grouped {
			o.group, o.grouped = add.group, true
		}
		if add.ctx != nil {
			o.ctx = add.ctx
		}

		o.timeout, o.limit = cmp.Or(add.timeout, o.timeout), cmp.Or(add.limit, o.limit)
		o.algorithm, o.label, o.key = cmp.Or(add.algorithm, o.algorithm), cmp.Or(add.label, o.label), cmp.Or(add.key, o.key)
	}
	return o
}

// target returns the group that the call is for.
func (o CallOption) target() (*ProcessGroup, error) {
	if o.grouped {
		return o.group, o.group.usable()
	}
	return Default()
}

// torchNames is the option of ccl's calls in a call without a timeout, an algorithm, a label or a
// key.
var torchNames = ccl.WithTorchNames()

// call holds what a function of this package passes to package ccl. If err is not nil,
// comm is nil, with which every call of ccl fails at once; result and work return err instead.
type call struct {
	group *ProcessGroup
	comm  *ccl.Communicator
	ctx   context.Context
	err   error // there is no group, or no such peer
	opts  [1]ccl.CallOption
}

func prepare(opts []CallOption) (c call) {
	o := merge(opts)
	g, err := o.target()
	if err != nil {
		c.err = err
		return c
	}

	c.group, c.comm, c.ctx = g, g.comm, o.ctx
	c.opts[0] = torchNames
	if c.ctx == nil {
		c.ctx = g.rank.job.ctx
	}
	if o.timeout != 0 || o.algorithm != "" || o.label != "" || o.key != "" {
		c.opts[0] = ccl.WithTorchNames(ccl.WithTimeout(o.timeout), ccl.WithAlgorithm(o.algorithm), ccl.WithLabel(o.label), ccl.WithKey(o.key))
	}
	return c
}

// result returns the error of a call: err is what ccl returned.
func (c *call) result(err error) error {
	if c.err == nil {
		return err
	}
	if call, ok := errors.AsType[*CallError](err); ok { // knows where the call was made
		call.Err = c.err
		return call
	}
	return c.err
}

// work is result for a call that ccl has started.
func (c *call) work(w *Work) (*Work, error) {
	if c.err != nil {
		return nil, c.result(w.Err())
	}
	return w, nil
}

// asyncCall is a call of a collective that ccl starts.
type asyncCall struct {
	call
	started *Work
	opts    [2]ccl.CallOption // those of call, and WithWork
}

func prepareAsync(opts []CallOption) asyncCall {
	c := asyncCall{call: prepare(opts), started: new(Work)}
	c.opts = [...]ccl.CallOption{c.call.opts[0], ccl.WithWork(c.started)}
	return c
}

// returnWork returns the Work of the call. Its argument is what ccl returned, and the Work has it
// too.
func (c *asyncCall) returnWork(error) (*Work, error) { return c.work(c.started) }

// root maps a global rank to a group rank, or to an invalid one if it is not a member,
// so that ccl rejects the call and consumes its number. AnySource stays.
func (c *call) root(global int) int {
	if c.err != nil || global == AnySource || c.group.isDefault() {
		return global
	}
	rank, err := c.group.GroupRank(global)
	if err != nil {
		return -1
	}
	return rank
}

// rooted is result for a call with a root. It restores the global rank in ccl's error for
// an invalid one.
func (c *call) rooted(operation string, global int, err error) error {
	if _, ok := errors.AsType[*InvalidRootError](err); ok && !c.group.isDefault() {
		c.err = c.group.outsider(operation, global)
	}
	return c.result(err)
}

// outsider is the error of a call with a root that is no member.
func (g *ProcessGroup) outsider(operation string, global int) error {
	invalid := &InvalidRootError{Root: global, Size: g.Size()}
	if g.isDefault() {
		return &explained{operation, invalid.Error(), []error{invalid}}
	}
	return &explained{operation, fmt.Sprintf("rank %d is not in the group of %s", global, transport.RanksText(g.Ranks())), []error{invalid}}
}
