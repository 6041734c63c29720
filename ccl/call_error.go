package ccl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccl/goccl/internal/text"
)

// CallError tells which call of the program an error is about. Every error of a collective, a send
// or a receive is one. It wraps a *CollectiveFailedError if the call has failed, and the reason if
// it was rejected.
type CallError struct {
	Operation string // the collective, such as "all_reduce"; "send" or "recv"
	Label     string // of WithLabel
	DType     DType  // of the elements, 0 if the call moves none
	Count     int    // of elements: the number that ranks must agree on, or of this rank's message
	Seq       uint64 // number of the call on its group, from 1; 0 if it has none, as a message
	// File and Line are where the program made the call: in the first function on the stack that is
	// not goccl's. File is the full path, "" if it is not known.
	File string
	Line int
	// Async: the call was started by WithWork, Isend or Irecv, at File and Line, which
	// are known with defaults.debug or GOCCL_DEBUG.
	//
	// Waited: it is not known where the call was started. File and Line are where the program waited
	// for it, in Work.Wait or in a function of goccl that calls it.
	Async, Waited bool
	Err           error
}

func (e *CallError) Error() string {
	if failed, ok := e.Err.(*CollectiveFailedError); ok { //nolint:errorlint // a wrapped one has words before it
		return failed.text(e)
	}
	return e.Err.Error() + e.about()
}

// Reason returns the text of err without the package and the operation, for a text that has them
// already. That of a *CollectiveFailedError keeps the operation. That of an error that wraps one of
// this package with words of its own stays whole.
func Reason(err error) string {
	if e, ok := err.(interface{ reason() string }); ok {
		return e.reason()
	}
	return text.Reason(err)
}

func (e *CallError) reason() string {
	if failed, ok := e.Err.(*CollectiveFailedError); ok { //nolint:errorlint // as Error
		return failed.reason(e)
	}
	return Reason(e.Err) + e.about()
}

// about returns what a rejected call adds to its reason: its number, its label and its line.
func (e *CallError) about() string {
	var about []string
	if e.Seq > 0 {
		about = append(about, fmt.Sprint("call ", e.Seq))
	}
	if _, isNamed := errors.AsType[*groupError](e.Err); e.Label != "" && !isNamed {
		about = append(about, fmt.Sprintf("%q", e.Label))
	}

	if at := e.at(); at != "" {
		about = append(about, at)
	}
	if about == nil {
		return e.hint()
	}
	return " (" + strings.Join(about, " ") + ")" + e.hint()
}

// Unwrap returns the failure, or the reason why the call was rejected.
func (e *CallError) Unwrap() error { return e.Err }

// at returns where the call was made, such as "at train/loop.go:42", "" if that is not known.
func (e *CallError) at() string {
	switch at := (position{e.File, e.Line}); {
	case e.File == "" || e.Waited:
		return ""
	case e.Async:
		return "started at " + at.String()
	default:
		return "at " + at.String()
	}
}

// hint returns how to find out where an asynchronous call was started, and where the program waited
// for it, "" if the former is known.
func (e *CallError) hint() string {
	switch {
	case e.Waited:
		return fmt.Sprintf(" (asynchronous, waited for at %v; GOCCL_DEBUG=true shows where it was started)", &position{e.File, e.Line})
	case e.Async && e.File == "":
		return " (asynchronous; GOCCL_DEBUG=true shows where it was started)"
	}
	return ""
}

// withoutHint returns an error whose text is that of e without the hint.
func (e *CallError) withoutHint() *CallError {
	if e.hint() == "" {
		return e
	}
	plain := *e
	plain.File, plain.Async, plain.Waited = "", false, false
	return &plain
}

// waitedFor returns err, the error of a Work that the caller has waited for, with the line of the
// program that did so, unless it is known where the call was started.
func waitedFor(err error) error {
	call, ok := err.(*CallError) //nolint:errorlint // a wrapped one has words before it
	if !ok || !call.Async || call.File != "" {
		return err
	}
	at := caller(false)
	if at == nil {
		return err
	}
	waited := *call // other goroutines may have waited elsewhere
	waited.File, waited.Line, waited.Waited = at.file, at.line, true
	return &waited
}

// callText returns the name of a call: its operation, label, size and algorithm.
func callText(operation, label string, dtype DType, count int, algorithm string) string {
	text := operation
	if label != "" {
		text += fmt.Sprintf(" %q", label)
	}
	if dtype != 0 {
		text += fmt.Sprintf(" of %d %v", count, dtype)
	}
	if algorithm != "" {
		text += " by " + algorithm
	}
	return text
}

// newCallError makes the error of an operation with the options o. For a synchronous one the caller
// is the goroutine of the call.
func newCallError(operation string, o *CallOption, err error) *CallError {
	e := &CallError{Operation: operation, Label: o.label, Async: o.queued, Err: err}
	at := o.started
	if !o.queued {
		at = caller(false)
	}
	if at != nil {
		e.File, e.Line = at.file, at.line
	}
	return e
}

// callError returns err, an error of the current request, as a *CallError, unless it contains one.
func (e *engine) callError(err error) error {
	if _, ok := errors.AsType[*CallError](err); ok {
		return err
	}
	return e.newCallError(err)
}

func (e *engine) newCallError(err error) *CallError {
	r := &e.call.request
	made := newCallError(r.coll.String(), &r.opts, err)
	if !r.coll.exchangesLengths() {
		made.DType, made.Count = r.dtype, r.count
	}
	if e.size > 1 {
		made.Seq = e.number(e.seq)
	}
	return made
}
