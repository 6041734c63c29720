package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
)

// Error is a mistake in a configuration file or an environment variable.
type Error struct {
	File    string // "environment" for a variable
	Line    int    // 0 if the mistake has no line
	Column  int    // in characters, from 1; 0 if the mistake is about a whole line or has none
	Key     string // path of the key, such as "algorithms.ring.params.chunk"
	Message string
	Err     error // the cause, such as fs.ErrNotExist, or nil
}

// Error returns "file:line:column: key: message".
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.Column > 0 {
		at += fmt.Sprintf(":%d", e.Column)
	}
	if e.Key != "" {
		at += ": " + e.Key
	}
	return at + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// UnsupportedError is a call that the chosen entry does not support.
type UnsupportedError struct {
	Shape    ccl.Shape
	Entry    string
	Reason   error
	ChosenBy string   // "ccl.yaml:31: rule 1", or "option"
	Others   []string // the entries that support the call
}

// Error names the call, the entry with its reason, what chose it, and the entries that can.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("ccl: %s: %v by %s: %v (chosen by %s); entries that can: %s",
		e.Shape, ccl.ErrNotImplemented, e.Entry, e.Reason, e.ChosenBy, text.List(e.Others))
}

// Unwrap returns ccl.ErrNotImplemented and the reason.
func (e *UnsupportedError) Unwrap() []error { return []error{ccl.ErrNotImplemented, e.Reason} }

// Errors are several mistakes in the order of the file. errors.As finds the first as an
// *Error; errors.AsType[Errors] finds all. A single mistake is an *Error without Errors.
type Errors []*Error

// Error returns the number of mistakes and, each on a line of its own, the first 20.
func (e Errors) Error() string {
	const most = 20
	var b strings.Builder
	fmt.Fprintf(&b, "%s has %d mistakes:", e[0].File, len(e))
	for _, mistake := range e[:min(most, len(e))] {
		b.WriteString("\n" + mistake.Error())
	}
	if more := len(e) - most; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return b.String()
}

// Unwrap returns the mistakes.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, mistake := range e {
		all[i] = mistake
	}
	return all
}

// inOrder returns the mistakes in errs, which may be joined, as one error: nil, an *Error, or
// Errors in the order of the file. An error of another type is returned alone.
func inOrder(errs ...error) error {
	var all Errors
	for _, err := range errs {
		switch err := err.(type) { //nolint:errorlint // the mistake itself, not its cause
		case nil:
		case *Error:
			all = append(all, err)
		case interface{ Unwrap() []error }:
			switch within := inOrder(err.Unwrap()...).(type) { //nolint:errorlint // made here
			case nil:
			case *Error:
				all = append(all, within)
			case Errors:
				all = append(all, within...)
			default:
				return within
			}
		default:
			return err
		}
	}

	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	slices.SortStableFunc(all, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all
}
