package ddp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// UnreadyError says that gradients were not ready when a step ended. Its text does not name the
// rank, which Spawn and the errors of other ranks put before it.
type UnreadyError struct {
	Rank       int
	Parameters []string // names
	Static     bool     // the option StaticGraph is set, and they were ready in the first step
	IsSharded  bool     // the option LogicalShards is set
	Shard      int      // the first shard that lacks them, with LogicalShards
}

// namesShown is how many names of parameters an error lists.
const namesShown = 8

func (e *UnreadyError) Error() string {
	why := "call Ready for each, or set FindUnused if a step may leave parameters out"
	if e.Static {
		why = "they were ready in the first step; set FindUnused in place of StaticGraph if steps differ"
	}
	shard := ""
	if e.IsSharded {
		shard, why = fmt.Sprintf(" in shard %d", e.Shard), "loop over all Shards, and call Ready for each parameter in each"
	}
	return fmt.Sprintf("ddp: no gradient was ready for %s%s: %s", joinNames(e.Parameters), shard, why)
}

// joinNames returns the names of parameters, or the first of them, in quotes where they are empty,
// cut off, or have characters that a terminal may act on.
func joinNames(names []string) string {
	more := ""
	if n := len(names) - namesShown; n > 0 {
		names, more = names[:namesShown], fmt.Sprintf(" and %d more", n)
	}
	shown := slices.Clone(names)
	for i, name := range shown {
		if quoted := fmt.Sprintf("%.100q", name); name == "" || quoted != `"`+name+`"` {
			shown[i] = quoted
		}
	}
	return strings.Join(shown, ", ") + more
}

func (r *Reducer) bucketError(bucket int, err error) error {
	var names []string
	for _, i := range r.buckets[bucket].parameters {
		names = append(names, r.params[i].name)
	}
	return &callError{err, fmt.Sprintf("ddp: bucket %d (%s): ", bucket, joinNames(names)), checkpointHint(err)}
}

// callError is the error of a call that the Reducer has made. Its text has one package, this one.
type callError struct {
	err          error
	prefix, hint string
}

func inCall(err error) error { return &callError{err: err, prefix: "ddp: "} }

func (e *callError) Error() string { return e.prefix + ccl.Reason(e.err) + e.hint }
func (e *callError) Unwrap() error { return e.err }

// checkpointHint returns what to do about err, the error of a call of a Reducer's group, if some
// ranks call Save or Load alone, otherwise "".
func checkpointHint(err error) string {
	call, ok := errors.AsType[*ccl.CallError](err)
	_, isLate := errors.AsType[*dist.TimeoutError](err)
	isAlone := ok && isLate && slices.Contains(checkpoints, strconv.Quote(call.Label))
	if m, ok := errors.AsType[*ccl.MismatchError](err); ok {
		isAlone = slices.ContainsFunc(m.Values, func(v ccl.MismatchValue) bool { return slices.Contains(checkpoints, v.Value) })
	}
	if isAlone {
		return "; all ranks call Save, and all call Load, between the same steps; ranks that have fewer train within Join"
	}
	return ""
}

// checkpoints are the keys of the barriers with which Save and Load begin, as errors show them, and
// what they show where others make another collective.
var checkpoints = []string{`"ddp.Save"`, `"ddp.SaveAsync"`, `"ddp.SaveWork.Wait"`, `"ddp.Load"`, `"ddp.LoadLatest"`, ccl.CollBarrier.String()}

// noContext returns the error of a method whose context is nil.
func noContext(operation string) error {
	return invalid(operation, "the context is nil: use context.Background")
}

// invalid returns the error of an argument.
func invalid(operation, format string, args ...any) error {
	return &ccl.InvalidArgumentError{Operation: operation, Message: fmt.Sprintf(format, args...)}
}
