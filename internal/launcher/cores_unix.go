//go:build unix

package launcher

import "github.com/goccl/goccl/internal/cores"

// pinnedCores are the cores that a job's ranks have for themselves, if any.
type pinnedCores struct {
	reservation *cores.Reservation // nil if the ranks are not pinned
	isShared    bool               // other jobs use the same cores, so no rank is pinned now
	release     func()
}

// reserve gives the ranks cores of their own. By default too few cores are no error: the job
// shares those of other jobs.
func (p *pinnedCores) reserve(j *Spec) (err error) {
	p.release = func() {}
	if j.Pin == PinOn || j.Pin == PinDefault && j.Ranks > 1 {
		if p.reservation, err = cores.Reserve(j.Ranks, j.Pin == PinOn); err == nil {
			p.release = p.reservation.Release
			return nil
		}
		if j.Pin == PinOn {
			return &PinError{err}
		}
	}
	p.release = cores.Visit()
	return nil
}

// startOn starts a rank on its cores.
func (p *pinnedCores) startOn(rank int, start func() error) error {
	if p.reservation == nil {
		return start()
	}
	return p.reservation.On(rank, start)
}

// processors returns the variables for a rank that may need them, by its cores.
func (p *pinnedCores) processors(environment []string, rank int) []string {
	if p.reservation == nil {
		return nil
	}
	return processors(environment, p.reservation.Shares[rank])
}

// changed returns a channel that reports when other jobs begin or cease to use these cores.
func (p *pinnedCores) changed() <-chan struct{} {
	if p.reservation == nil {
		return nil
	}
	return p.reservation.Changed()
}

// move lets all ranks run on all cores while other jobs use them too, and pins them afterwards.
func (p *pinnedCores) move(ranks []rank) {
	shared := p.reservation.Shared()
	if shared == p.isShared {
		return
	}
	p.isShared = shared
	for i := range ranks {
		if r := &ranks[i]; r.PID != 0 && !r.isGone.Load() {
			p.reservation.Move(i, r.PID, shared)
		}
	}
}
