package failure

import (
	"context"
	"errors"
	"reflect"
	"slices"
)

// IsContextEnd reports whether err is, or wraps, the error of a context that has ended.
func IsContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// WithoutCause returns an error that says as err does what has happened to a group. If a context
// has ended, that is all: its cause may be an error of another group, with ranks of that.
func WithoutCause(err error) error {
	if IsContextEnd(err) {
		return context.Canceled
	}
	return err
}

// WithoutContextCauses returns err, in which errors.As does not find the causes of contexts that
// have ended (see transport.ContextError). These may be errors of another group, with ranks of
// that.
func WithoutContextCauses(err error) error {
	var inner []error
	switch e := err.(type) { //nolint:errorlint // one level at a time
	case interface{ WithoutCause() error }:
		return e.WithoutCause()
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = slices.Clone(e.Unwrap())
	default:
		return err
	}

	for i := range inner {
		inner[i] = WithoutContextCauses(inner[i])
	}
	return &pruned{err, inner}
}

// pruned is an error that wraps other ones than it does by itself.
type pruned struct {
	error
	inner []error
}

func (e *pruned) Unwrap() []error { return e.inner }

func (e *pruned) As(target any) bool {
	to, of := reflect.ValueOf(target).Elem(), reflect.ValueOf(e.error)
	if !of.Type().AssignableTo(to.Type()) {
		return false
	}
	to.Set(of)
	return true
}
