package ddp

import "time"

// Stats describe the steps of a Reducer on this rank.
type Stats struct {
	Steps         int           // with communication
	Buckets       int           // of a step
	Bytes         int           // that a step reduces
	Communicating time.Duration // in which buckets were reduced, slower ranks included
	Waiting       time.Duration // the part of it that this rank spent in Wait
}

// Hidden returns the share of communication that ran beside the program's own work, from 0 to 1.
func (s Stats) Hidden() float64 {
	if s.Communicating <= 0 {
		return 0
	}
	return max(0, 1-float64(s.Waiting)/float64(s.Communicating))
}

// Stats returns what has happened so far.
func (r *Reducer) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Buckets = len(r.buckets)
	for _, p := range r.params {
		s.Bytes += bytesOf(p.elements)
	}
	return s
}

// note counts a step, for which the program called Wait at the time waited.
func (r *Reducer) note(waited time.Time) {
	r.stats.Steps++
	for _, b := range r.buckets {
		begun, ended := b.work.Times()
		r.stats.Communicating += ended.Sub(begun)
		if begun.Before(waited) {
			begun = waited
		}
		if ended.After(begun) {
			r.stats.Waiting += ended.Sub(begun)
		}
	}
}
