package transport

import (
	"context"
	"errors"
	"fmt"

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
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
