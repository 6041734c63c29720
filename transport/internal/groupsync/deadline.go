package groupsync

import (
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// deadline measures the time of a call by the ticks of a ticker, which keeps running across calls.
type deadline struct {
	usual transport.Timeout // of calls that set no limit
	limit transport.Timeout // of the current call

	ticks      interleave.Uint64
	startTicks uint64           // ticks at the start of the call
	period     interleave.Int64 // the timeout for which the ticker was started, in nanoseconds
	ticker     *ticker          // guarded by the member's mu
	hasWarned  bool
	replied    func() bool // whether others have replied since, so that this rank may warn
}

// begin starts the time of a call, whose limit may be zero.
func (d *deadline) begin(limit transport.Timeout) {
	d.limit = d.usual
	if limit.After != 0 {
		d.limit = limit
	}
	d.startTicks = d.ticks.Load()
	d.hasWarned, d.replied = false, nil
}

// Patience returns how long this rank, before it gives up a wait, may wait for what others reply.
// Any goroutine may call it.
//
// It is an eighth of the timeout, so that a rank that waits for this one, and has half as much time
// again, does not give up first. It is no shorter than a busy process takes to reply.
func (r *Member) Patience() time.Duration {
	const least, most = 100 * time.Millisecond, 2 * time.Second
	if period := r.deadline.period.Load(); period != 0 {
		return min(max(time.Duration(period)/8, least), most)
	}
	return most
}

// restart starts the time of a call without end once more.
func (d *deadline) restart() {
	d.startTicks += ticksPerTimeout
	d.hasWarned, d.replied = false, nil
}

// startTicker makes sure that a ticker runs for the call's timeout.
func (r *Member) startTicker() {
	d := &r.deadline
	after := d.limit.After.Abs()
	if after == 0 || d.period.Load() == int64(after) {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if d.ticker != nil {
		d.ticker.stop()
	}
	if r.isClosed.Load() {
		return
	}

	d.period.Store(int64(after))
	d.startTicks = d.ticks.Load() // earlier ticks belong to another timeout
	d.ticker = newTicker(after, func() {
		d.ticks.Add(1)
		r.group.Wake(r.rank)
	})
}

// checkDeadline reports whether the call has timed out, and warns once after half of its timeout.
//
// Only a ticker for this timeout counts: until the rank has slept in this call, the ticker may
// belong to an earlier call. A call with a negative timeout never times out, and warns again each
// time that as long has passed.
func (r *Member) checkDeadline() interruption {
	d := &r.deadline
	if d.limit.After == 0 || d.period.Load() != int64(d.limit.After.Abs()) {
		return none
	}
	ticks := d.ticks.Load() - d.startTicks
	if ticks >= warnTick && r.knowsMissing() {
		r.warn()
	}

	switch {
	case ticks < timeoutTick:
		return none
	case d.limit.After < 0:
		d.restart()
		return none
	}
	return timedOut
}

// warn warns, once in a call.
func (r *Member) warn() {
	if d := &r.deadline; !d.hasWarned && d.limit.Warn != nil {
		d.hasWarned = true
		d.limit.Warn(r.call.seq, r.missingRanks())
	}
}

// knowsMissing reports whether missingRanks is right. Where ranks share no memory, this one asks
// the others first, and does not wait for that.
func (r *Member) knowsMissing() bool {
	d := &r.deadline
	if r.group.remote == nil || d.hasWarned || d.limit.Warn == nil {
		return true
	}
	if d.replied == nil {
		d.replied = r.group.remote.StartCatchUp()
	}
	return d.replied()
}
