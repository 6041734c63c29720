package transporttest

import (
	"bytes"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// records checks endpoints that are Recorders; others have nothing to show.
func records(h *harness, n int) {
	h.world(n, 1, "", func(w *world) {
		if _, ok := w.ranks[0].Endpoint.(transport.Recorder); !ok {
			return
		}
		all := make([]transport.Records, n)
		w.each(func(r *rank) {
			own, err := r.Endpoint.(transport.Recorder).Records()
			must(err)
			all[r.me] = own
			for rank := range n {
				if w.apart(r.me, rank) {
					if own.Part(rank) != nil {
						must(fmt.Errorf("rank %d sees the part of rank %d, which is on another node", r.me, rank))
					}
					continue
				}
				if part := own.Part(rank); len(part) < 4*4096 || len(part)%4096 != 0 {
					must(fmt.Errorf("rank %d: the part of rank %d has %d bytes", r.me, rank, len(part)))
				}
			}
			part := own.Part(r.me)
			if bytes.Count(part, []byte{0}) != len(part) {
				must(fmt.Errorf("rank %d: its part is not zero at first", r.me))
			}
			for i := range part {
				part[i] = byte(r.me + 1)
			}
			r.greet()
			for rank := range n {
				part := own.Part(rank)
				if w.apart(r.me, rank) {
					continue
				}
				if all := bytes.Count(part, []byte{byte(rank + 1)}); all != len(part) {
					must(fmt.Errorf("rank %d sees %d of %d bytes that rank %d has written", r.me, all, len(part), rank))
				}
			}
			if own.Vanished("a panic") != nil {
				must(fmt.Errorf("rank %d: Vanished takes any panic for its own", r.me))
			}
			r.greet()
		})
		for i, r := range all {
			if r.Job() != all[0].Job() || r.Job() == "" {
				must(fmt.Errorf("rank %d is in job %q, rank 0 in %q", i, r.Job(), all[0].Job()))
			}
		}
		// What a rank has written stays when it has left.
		must(w.ranks[n-1].Close())
		must(w.ranks[n-1].Free())
		for i, r := range all {
			if !w.apart(i, n-1) && r.Part(n - 1)[100] != byte(n) {
				must(fmt.Errorf("rank %d no longer sees what rank %d has written", i, n-1))
			}
		}
		for _, r := range all {
			must(r.Free())
		}
	})
}

// apart reports whether ranks are on different nodes.
func (w *world) apart(rank, other int) bool {
	placed, ok := w.ranks[rank].Endpoint.(transport.Nodes)
	return ok && placed.Nodes()[rank] != placed.Nodes()[other]
}
