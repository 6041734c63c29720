package groupsync

import (
	"context"
	"reflect"

	"github.com/goccl/goccl/internal/interleave"
)

// home is the first context under which a rank has slept. It usually is the job's and comes with
// each call, so it leaves a token when it ends: a select on any other context costs about as much
// as a small call.
type home struct {
	ctx  context.Context
	stop func() bool // guarded by the member's mu
}

// isHome reports whether ctx leaves a token when it ends.
func (r *Member) isHome(ctx context.Context) bool {
	if r.home.ctx == nil {
		if reflect.TypeOf(ctx).Kind() != reflect.Pointer {
			return false // values of other kinds may not be comparable
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.isClosed.Load() {
			return false
		}
		r.home.ctx = ctx
		r.home.stop = interleave.AfterContext(ctx, func() { r.group.Wake(r.rank) })
	}
	return r.home.ctx == ctx
}
