package ddp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/jsonfloat"
)

// CheckpointError says why a checkpoint could not be written or was refused. All ranks get that of
// a Reducer's method.
type CheckpointError struct {
	Path   string
	Reason string
	Err    error // the cause: fs.ErrNotExist or *ccl.MismatchError on all ranks, or an *agree.RejectedError
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("ddp: checkpoint %s: %s", e.Path, e.Reason)
}

func (e *CheckpointError) Unwrap() error { return e.Err }

// Save writes a checkpoint: the parameters, the buffers, what NewOptimizerState has made, more
// tensors, and state, anything that encoding/json takes, such as the epoch and the step.
//
// Rank 0 writes what it has; all ranks call Save and get its error. The file replaces an older one
// at once, or not at all.
//
// A rank that does not call Save within the group's timeout is a *dist.TimeoutError of the
// others. While rank 0 writes, they wait for as long as it takes, with warnings (dist.WithLogger),
// unless its process is stopped: that is a *dist.TimeoutError after 1.5 times the timeout.
//
// Parameters that differ between ranks are a *CheckpointError, in which errors.As finds a
// *ccl.MismatchError, and the file stays: see Verify. A loop whose ranks differ by design calls
// Save after its outer step, in which they become equal.
//
// The file has the safetensors format, which torch and Hugging Face read; its metadata has the
// version, a checksum and state. Infinities and NaN in state are strings, "Infinity", "-Infinity"
// and "NaN", which Load reads back into floats. Tensors of longer elements come first.
//
// The file has the mode of the one that it replaces; a new one has 0666 under the umask. The file
// behind a link is replaced. A link that leads to no file, another kind of file, and what Load
// would refuse are *CheckpointErrors, and the file stays: names that are not UTF-8, shapes that do
// not have the tensor's elements, a state of more than 100 MB, and one whose methods panic.
//
// While a rank writes, a temporary file (.goccl-...) lies beside the file; the next Save of the
// file removes what a killed process has left of its own.
//
// Options.KeepCheckpoints removes older files.
//
// Within Join and between Ready and Wait, Save is an *ccl.InvalidArgumentError of this rank. After
// the end of the Reducer or of its group it is ccl.ErrClosed.
func (r *Reducer) Save(ctx context.Context, path string, state any, more ...Tensor) error {
	return r.save(ctx, "Save", "rank 0 writes", path, func(states []Tensor) error {
		text, err := jsonfloat.Encode(state)
		if err != nil {
			return fmt.Errorf("the state: %w", err)
		}
		return r.opts.writeCheckpoint(path, text, r.tensors(states, more))
	})
}

// save is Save and SaveAsync: on rank 0 it calls work with the state of the optimizer.
func (r *Reducer) save(ctx context.Context, operation, what, path string, work func(states []Tensor) error) error {
	if err := r.beginCheckpoint(operation); err != nil {
		return err
	}
	defer r.comm.Release()
	key := "ddp." + operation
	if err := r.awaitRanks(ctx, key); err != nil {
		return err
	}

	if err := r.compareParameters(ctx); difference(err) != nil {
		return &CheckpointError{path, err.Error() + driftedHint, err}
	} else if err != nil {
		return inCall(err)
	}

	states, err := r.gatherStates(ctx)
	if err != nil {
		return err
	}

	var failed error
	if err := r.workTogether(ctx, key+": "+what, func() {
		if r.comm.Rank() == 0 {
			failed = work(states)
		}
	}); err != nil {
		return err
	}
	return r.agreeOnFile(ctx, key, path, failed, nil)
}

// agreeOnFile is the last call of Save and Load, to which all ranks come at once. It returns nil if
// no rank has failed and all have the same facts, and otherwise an error on all.
func (r *Reducer) agreeOnFile(ctx context.Context, key, path string, failed error, facts []agree.Fact) error {
	ctx = context.WithoutCancel(ctx) // its end could fail on this rank what has succeeded on others
	err := agree.Compare(ctx, r.comm, failed, facts, ccl.WithLabel(key), ccl.WithKey(key))
	if err == nil {
		return nil
	}
	if rejected, ok := errors.AsType[*agree.RejectedError](err); ok {
		if len(rejected.Ranks) == r.comm.Size() {
			return &CheckpointError{path, rejected.Err.Error(), rejected}
		}
		return &CheckpointError{path, rejected.Error(), rejected}
	}

	if differ := difference(err); differ != nil {
		return &CheckpointError{path, differ.Error(), differ}
	}
	return inCall(err)
}

// unmarshal returns a function that sets *state to what text says.
func unmarshal(text string, state any) (assign func(), err error) {
	to := reflect.ValueOf(state)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return nil, fmt.Errorf("a %T is to become its state: pass a pointer that is not nil to a value of the type that was saved", state)
	}
	read, err := jsonfloat.Decode([]byte(text), to.Type().Elem())
	if err != nil {
		return nil, fmt.Errorf("its state: %w", err)
	}
	return func() { to.Elem().Set(read) }, nil
}

// awaitRanks returns when all ranks have called it and a checkpoint of SaveAsync is written.
func (r *Reducer) awaitRanks(ctx context.Context, label string) error {
	if err := r.comm.Barrier(ctx, ccl.WithLabel(label), ccl.WithKey(label)); err != nil {
		return &callError{err, "ddp: ", checkpointHint(err)}
	}
	return r.endSaving(ctx)
}

// workTogether runs work, and returns when the work of all ranks has ended, or an error.
//
// A work may take as long as it likes. Once in each timeout of the group a rank shows the others
// that it is there, so that one whose process is stopped is a timeout. A work that panics or calls
// runtime.Goexit, in a method of the state, does so in the caller's goroutine.
func (r *Reducer) workTogether(ctx context.Context, label string, work func()) error {
	every := r.comm.Selector().Timeout()
	var turn <-chan time.Time // never, if calls have no timeout
	ended := make(chan struct{})
	hasReturned, panicked := false, any(nil)
	interleave.Go(func() {
		defer close(ended)
		defer func() { panicked = recover() }()
		work()
		hasReturned = true
	})

	for {
		if every > 0 {
			turn = interleave.After(every)
		}

		hasEnded := 0
		if interleave.First(ended, turn) == 0 {
			hasEnded = 1
			switch {
			case panicked != nil:
				panic(panicked)
			case !hasReturned:
				runtime.Goexit()
			}
		}

		all, err := agree.Exchange(ctx, r.comm, nil, []int{hasEnded}, ccl.WithLabel(label), ccl.WithKey(label), ccl.WithTimeout(every+every/2))
		if err != nil {
			interleave.Receive(ended)
			return inCall(err)
		}
		if !slices.Contains(all, 0) {
			return nil
		}
	}
}

// tensors returns what a checkpoint contains, in the order of the file: longer elements come first,
// so that each tensor lies at a multiple of its element's length, as readers expect.
func (r *Reducer) tensors(states, more []Tensor) []Tensor {
	var all []Tensor
	for _, p := range r.params {
		all = append(all, p.Tensor)
	}
	all = slices.Concat(all, r.opts.Buffers, states, more)
	slices.SortStableFunc(all, func(a, b Tensor) int { return b.elementBytes() - a.elementBytes() })
	return all
}

// elementBytes returns the length of an element, or 0 for the zero Tensor.
func (t Tensor) elementBytes() int {
	if t.elements == nil {
		return 0
	}
	return t.elements.dtype().Size()
}
