package transport

import (
	"context"
	"errors"
	"fmt"
)

// ContextError returns why ctx has ended, nil while it lives: the error of ctx,
// context.Canceled or context.DeadlineExceeded, and with it the cause that it was ended
// with (context.WithCancelCause), so that errors.Is and errors.As find both.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
