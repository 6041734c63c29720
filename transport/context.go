package transport

import (
	"context"
	"errors"

	"github.com/goccl/goccl/internal/interleave"
)

// ContextError returns why ctx has ended, nil if it has not. errors.Is finds context.Canceled or
// context.DeadlineExceeded, and the cause that was given to context.WithCancelCause.
func ContextError(ctx context.Context) error {
	interleave.Step()
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		return &ended{err, cause}
	}
	return err
}

// ended is the error of a context that has ended for a cause.
type ended struct{ err, cause error }

func (e *ended) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *ended) Unwrap() []error { return []error{e.err, e.cause} }

// WithoutCause returns the error of the context alone.
func (e *ended) WithoutCause() error { return e.err }
