package failure

import (
	"context"
	"errors"
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
