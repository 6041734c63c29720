package launchenv

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/userfile"
)

// Variables with which launchers name a file for the error of a rank.
const (
	ReportVariable  = "GOCCL_ERROR_FILE"
	torchErrorsFile = "TORCHELASTIC_ERROR_FILE"
)

// Report is what a rank tells its launcher when it fails; see "Reports" in the package
// comment.
type Report struct {
	Version int       `json:"version"` // 1
	Rank    int       `json:"rank"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"` // when the rank failed, to the nanosecond
	Kind    FailKind  `json:"kind"`
	// Message is the text of the error, or "panic: " and the value of the panic.
	Message string `json:"message"`
	// Frames are the program's own functions on the stack of the panic, the innermost
	// first, without functions of the Go runtime, the standard library and goccl.
	Frames []Frame `json:"frames,omitempty"`
	// IsConfiguration: a configuration could not be loaded.
	IsConfiguration bool `json:"configuration,omitempty"`
	// Cause is 0 if the failure is the rank's own. Otherwise the ranks in Ranks caused it in this way.
	Cause failure.Kind `json:"because,omitempty"`
	// Ranks are the global ranks that the error names, ascending. It may be empty even if Cause is
	// not 0: errors of a subgroup use group ranks.
	Ranks []int `json:"ranks,omitempty"`
	// Awaited is the global rank whose message the failed call itself waited for, nil if none.
	Awaited *int `json:"awaited,omitempty"`
}

// IsConsequence reports whether only other ranks caused the failure.
func (r *Report) IsConsequence() bool { return r.Cause != 0 && !slices.Contains(r.Ranks, r.Rank) }

// Failure returns what the report says of who is to blame.
func (r *Report) Failure() *failure.Report {
	return &failure.Report{
		Kind: r.Cause, Ranks: r.Ranks, Awaited: r.Awaited, Time: r.Time, Text: r.Message,
		IsJoining: r.Kind == FailedInit, MayRecover: r.Kind == FailedCall,
	}
}

// FailKind is the kind of a failure.
type FailKind string

// Kinds of failures.
const (
	FailedInit   FailKind = "init"   // dist.InitProcessGroup, or dist.Spawn before the worker started
	FailedError  FailKind = "error"  // the worker returned an error
	FailedPanic  FailKind = "panic"  // the worker panicked
	FailedCall   FailKind = "call"   // a call on a group; the program has not ended yet, and may go on
	FailedGoexit FailKind = "goexit" // the worker ended its goroutine by runtime.Goexit
)

// Send writes r to the file that the launcher has named, if any. It replaces an earlier
// report.
func (r *Report) Send(getenv func(string) string) error {
	switch {
	case getenv(ReportVariable) != "":
		return replace(getenv(ReportVariable), r)
	case getenv(torchErrorsFile) != "":
		return replace(getenv(torchErrorsFile), r.torch())
	}
	return nil
}

// TakeBack removes what Send wrote: the rank has recovered.
func TakeBack(getenv func(string) string) error {
	path := cmp.Or(getenv(ReportVariable), getenv(torchErrorsFile))
	if err := os.Remove(path); path != "" && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadReport reads the report in the file path. It returns nil if the rank wrote none, and an
// error if the file is not a regular one of this user.
func ReadReport(path string) (*Report, error) { return readFile[Report](path, "the report of a rank") }

// readFile reads a T as JSON. It returns nil if the file does not exist or is empty.
func readFile[T any](path, what string) (*T, error) {
	text, err := userfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", what, path, err)
	}
	return v, nil
}

// replacements counts the files of replace, whose names differ.
var replacements atomic.Int64

// replace writes v to the file path as JSON, atomically. It takes one descriptor, where package os
// would crash without three.
func replace(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s.%d-%d", path, os.Getpid(), replacements.Add(1))
	f, err := syscall.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}

	n, err := syscall.Write(f, append(text, '\n'))
	if err == nil && n <= len(text) {
		err = io.ErrShortWrite
	}
	if err = errors.Join(err, syscall.Close(f)); err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// torch returns the report as torch.distributed.elastic's ErrorHandler writes it.
func (r *Report) torch() any {
	stack := r.Message
	for _, f := range r.Frames {
		stack += fmt.Sprintf("\n  %s\n    %s:%d", f.Function, f.File, f.Line)
	}
	seconds := r.Time.Unix()
	if r.IsConsequence() {
		seconds++ // after a cause in the same second
	}
	return map[string]any{"message": map[string]any{
		"message": r.Message,
		"extraInfo": map[string]string{
			"py_callstack": stack,               // shown instead of the message
			"timestamp":    fmt.Sprint(seconds), // the least is the root cause
		},
	}}
}
