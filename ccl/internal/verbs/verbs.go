// Package verbs describes the verbs that a kernel calls: to the conformance suite, which sees every
// transfer, and in errors, which name the line of the kernel.
//
// # Model
//
// The engine reports each transfer to an endpoint that is an [Observer], before the first byte
// moves. No transport is one; the conformance suite wraps the endpoints of its ranks.
package verbs

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goccl/goccl/internal/library"
)

// None is the missing peer of a transfer in one direction.
const None = -1

// Transfer is a verb that sends, receives, or does both.
type Transfer struct {
	To, From       int // None if it does not send, or not receive
	Sent, Received Part
	Reduces        bool // the data received are reduced
}

// Verb returns the name of the method of ccl.Call.
func (t *Transfer) Verb() string {
	name := ""
	if t.To != None {
		name = "Send"
	}
	if t.From != None {
		name += "Recv"
	}
	if t.Reduces {
		name += "Reduce"
	}
	return name
}

// Part is consecutive elements of one of a rank's buffers.
type Part struct {
	Buffer string // "in", "out", "scratch", or "memory" of another kind
	Lo, Hi int
}

// Len returns the number of elements.
func (p Part) Len() int { return p.Hi - p.Lo }

func (p Part) String() string { return fmt.Sprintf("%s[%d:%d]", p.Buffer, p.Lo, p.Hi) }

// Observer is implemented by endpoints that see the transfers of their rank. Transfer is called on
// the goroutine of the kernel.
type Observer interface{ Transfer(t Transfer) }

// Position is a line of a kernel and the verb that it calls.
type Position struct {
	Verb string // such as "SendRecv"
	Line string // such as "ring.go:42"; "" if the verb is all that its goroutine does
}

func (p Position) String() string {
	if p.Line == "" {
		return p.Verb
	}
	return p.Verb + " at " + p.Line
}

// Frames of these packages are not a kernel's.
const (
	engine = "github.com/goccl/goccl/ccl."
	steps  = "github.com/goccl/goccl/algorithms/internal/steps."
)

// Caller returns the verb that runs on this goroutine, and the kernel's line that called it. It is
// the zero Position if none runs. It takes microseconds and is for failures.
//
// The built-in kernels share steps of several verbs: there the step is what their line calls.
func Caller() Position {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	verb := ""

	for {
		frame, more := frames.Next()
		switch {
		case strings.HasPrefix(frame.Function, engine):
			verb = frame.Function[strings.LastIndex(frame.Function, ".")+1:]
		case verb != "" && strings.HasPrefix(frame.Function, steps):
			verb, _, _ = strings.Cut(path.Base(frame.Function), ".func")
		case verb != "" && !library.IsStandard(frame.Function, frame.File):
			return Position{verb, fmt.Sprintf("%s:%d", path.Base(filepath.ToSlash(frame.File)), frame.Line)}
		}

		if !more {
			return Position{Verb: verb}
		}
	}
}
