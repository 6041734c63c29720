//go:build !linux

package cores

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Usable returns an error that wraps errors.ErrUnsupported.
func Usable() ([]int, error) {
	return nil, fmt.Errorf("pinning ranks to cores: %w on %s, which has no call for it", errors.ErrUnsupported, runtime.GOOS)
}

// Use returns errors.ErrUnsupported.
func Use([]int) error { return errors.ErrUnsupported }

// lock is nothing: Usable fails first.
type lock struct{}

func take(string) (l lock, held bool) { return lock{}, false }

func release(lock) {}

func (g *guests) receive(lock) {}

func (c Core) take() (l lock, held bool) { return lock{}, false }

func (c Core) visit(context.Context) {}

func move(int, []int, []int) {}
