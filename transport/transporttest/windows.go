package transporttest

import (
	"bytes"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// buffers are what a rank shows in windows. They are rewritten before and after
// every call, so that a peer that touches them too early or too late is seen.
type buffers struct{ in, out []byte }

func (m *buffers) resize(in, out int) {
	if len(m.in) < in {
		m.in = make([]byte, in)
	}
	if len(m.out) < out {
		m.out = make([]byte, out)
	}
}

func windows(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		lengths := []int{0, 1, n - 1, n, n + 1, 63, 64, 1000}
		if s := w.ranks[0].Staging(); s != nil {
			p := min(s.PieceBytes(), maxData/4)
			lengths = append(lengths, p-1, p, p+1, 3*p+5)
		} else {
			lengths = append(lengths, 4096, 300<<10)
		}
		return w.each(func(r *rank) error {
			for i := range 8 * len(lengths) {
				length := lengths[i%len(lengths)]
				if err := r.window(length, i/2%2 == 0, i/len(lengths)%2 == 0); err != nil {
					return fmt.Errorf("call %d, window of %d bytes: %w", r.seq, length, err)
				}
				r.yield()
			}
			return nil
		})
	})
}

// window makes a call in which rank b's body copies block b of its successor's
// input to block b of all outputs.
func (r *rank) window(length int, inPlace, shared bool) error {
	e := r.entry()
	r.mem.resize(length, length)
	in, out := r.mem.in[:length], r.mem.out[:length]
	copy(in, data(length, r.me, int(e.Seq)))
	if inPlace {
		out = in
	}
	e.Send, e.Recv, e.Exposed = in, out, true
	e.AnyRunner, e.Work = shared, 2*length*r.n
	piece := max(length, 1)
	if s := r.Staging(); s != nil {
		piece = s.PieceBytes()
		r.stageFirst(e, in, shared)
	}
	err := r.call(e, func(b *rank) error {
		if r.Staging() == nil {
			return b.copyBlocks(e.Seq, length)
		}
		if b != r {
			return fmt.Errorf("rank %d runs the body of rank %d, whose memory it cannot see", r.me, b.me)
		}
		return r.copyPieces(e.Seq, in, out)
	})
	if err != nil {
		poison(in) // nobody may be looking any more
		poison(out)
		return err
	}
	return r.checkWindow(e.Seq, in, out, piece)
}

// checkWindow verifies and then overwrites buffers after a window call.
func (r *rank) checkWindow(seq uint64, in, out []byte, piece int) error {
	length := len(in)
	for at := 0; at < length; at += piece {
		end := min(at+piece, length)
		for b := range r.n {
			lo, hi := block(end-at, b, r.n)
			want := data(length, (b+1)%r.n, int(seq))[at+lo : at+hi]
			if err := same(out[at+lo:at+hi], want, "output, block %d of the piece at %d", b, at); err != nil {
				return err
			}
		}
	}
	if length > 0 && &in[0] != &out[0] {
		if err := same(in, data(length, r.me, int(seq)), "input after the call"); err != nil {
			return err
		}
	}
	poison(in)
	poison(out)
	return nil
}

// block is the part of n bytes that belongs to rank of ranks.
func block(n, rank, ranks int) (lo, hi int) { return n * rank / ranks, n * (rank + 1) / ranks }

func (r *rank) copyBlocks(seq uint64, length int) error {
	lo, hi := block(length, r.me, r.n)
	var from []byte
	for q := range r.n {
		send, recv := r.Memory().Buffers(q)
		if len(send) != length || len(recv) != length {
			return fmt.Errorf("Buffers(%d) are %d and %d bytes long", q, len(send), len(recv))
		}
		if err := same(send[lo:hi], data(length, q, int(seq))[lo:hi], "input of rank %d, seen by rank %d", q, r.me); err != nil {
			return err
		}
		if q == (r.me+1)%r.n {
			from = send[lo:hi]
		}
	}
	for q := range r.n {
		_, recv := r.Memory().Buffers(q)
		copy(recv[lo:hi], from)
	}
	return nil
}

// stageFirst stages the first piece of a call's input, for Enter to show it or else for
// the first turn after that.
func (r *rank) stageFirst(e *transport.Arrival, in []byte, enter bool) {
	s := r.Staging()
	s.PutInput(in[:min(s.PieceBytes(), len(in))], 0, 0)
	e.Staged = enter
}

// turn makes the next turn of windows, and may be late for what follows.
func (r *rank) turn() error {
	if err := r.Staging().Flip(); err != nil {
		return fmt.Errorf("Turn: %w", err)
	}
	r.yield()
	return nil
}

// copyPieces stages each piece, but the first, before the turn that shows the results
// of the one before.
func (r *rank) copyPieces(seq uint64, in, out []byte) error {
	s := r.Staging()
	piece := s.PieceBytes()
	for at := 0; at < len(in); at += piece {
		end := min(at+piece, len(in))
		if err := r.turn(); err != nil {
			return err
		}
		if at > 0 {
			if err := r.takeResults(out, at-piece, at); err != nil {
				return err
			}
		}
		lo, hi := block(end-at, r.me, r.n)
		for q := range r.n {
			want := data(len(in), q, int(seq))[at:end]
			if err := same(s.Input(q, end-at), want, "what rank %d staged of the piece at %d", q, at); err != nil {
				return err
			}
		}
		s.PutResult(lo, s.Input((r.me+1)%r.n, end-at)[lo:hi])
		if end < len(in) {
			s.PutInput(in[end:min(end+piece, len(in))], 0, 0)
		}
	}
	if err := r.turn(); err != nil {
		return err
	}
	if len(in) == 0 {
		return nil
	}
	return r.takeResults(out, (len(in)-1)/piece*piece, len(in))
}

// takeResults copies what all ranks shared of the piece from `at` to end.
func (r *rank) takeResults(out []byte, at, end int) error {
	for q := range r.n {
		lo, hi, result := r.Staging().Result(q)
		if wantLo, wantHi := block(end-at, q, r.n); lo != wantLo || hi != wantHi || len(result) != hi-lo {
			return fmt.Errorf("rank %d shared bytes %d to %d, Shared says %d to %d with %d bytes",
				q, wantLo, wantHi, lo, hi, len(result))
		}
		copy(out[at+lo:], result)
	}
	return nil
}

// unevenWindows gathers inputs of different lengths.
func unevenWindows(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		unit := 100
		if s := w.ranks[0].Staging(); s != nil {
			unit = min(s.PieceBytes(), maxData/8)
		}
		return w.each(func(r *rank) error {
			for i := range 40 {
				length := func(q int) int { return int(mix(uint64(i))>>8+uint64(3*q)) % 4 * unit / 2 }
				if err := r.gather(length, i%2 == 0); err != nil {
					return fmt.Errorf("call %d: %w", r.seq, err)
				}
				r.yield()
			}
			return nil
		})
	})
}

// gather makes a call in which every rank gets all inputs, length(q) bytes of
// rank q, one after the other. The body of rank b moves its successor's.
func (r *rank) gather(length func(q int) int, shared bool) error {
	at := make([]int, r.n+1)
	longest := 0
	for q := range r.n {
		at[q+1] = at[q] + length(q)
		longest = max(longest, length(q))
	}
	e := r.entry()
	mine := length(r.me)
	r.mem.resize(mine, at[r.n])
	in, out := r.mem.in[:mine], r.mem.out[:at[r.n]]
	copy(in, data(mine, r.me, int(e.Seq)))
	if mine == 0 {
		in = nil
	}
	e.Send, e.Recv, e.Exposed = in, out, true
	e.AnyRunner, e.Work = shared, at[r.n]
	if r.Staging() != nil {
		r.stageFirst(e, in, shared)
	}
	err := r.call(e, func(b *rank) error {
		if r.Staging() != nil {
			return r.gatherPieces(in, out, at, longest)
		}
		q := (b.me + 1) % b.n
		send, _ := b.Memory().Buffers(q)
		if len(send) != length(q) {
			return fmt.Errorf("rank %d sees %d bytes of input of rank %d instead of %d", b.me, len(send), q, length(q))
		}
		for to := range b.n {
			_, recv := b.Memory().Buffers(to)
			if len(recv) != at[b.n] {
				return fmt.Errorf("rank %d sees %d bytes of output of rank %d instead of %d", b.me, len(recv), to, at[b.n])
			}
			copy(recv[at[q]:], send)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for q := range r.n {
		if err := same(out[at[q]:at[q+1]], data(length(q), q, int(e.Seq)), "what rank %d brought", q); err != nil {
			return err
		}
	}
	poison(in)
	poison(out)
	return nil
}

func (r *rank) gatherPieces(in, out []byte, at []int, longest int) error {
	s := r.Staging()
	piece := s.PieceBytes()
	for lo := 0; lo < longest; lo += piece {
		if lo > 0 {
			s.PutInput(in[min(lo, len(in)):min(lo+piece, len(in))], 0, 0)
		}
		if err := r.turn(); err != nil {
			return err
		}
		for q := range r.n {
			length := at[q+1] - at[q]
			n := min(lo+piece, length) - min(lo, length)
			copy(out[at[q]+min(lo, length):], s.Input(q, n))
		}
	}
	return nil
}

// staging looks at pieces, and looks again after others may have gone on.
func staging(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		s := w.ranks[0].Staging()
		if s == nil {
			h.logf("Staging is nil: memory is shared")
			return nil
		}
		piece := s.PieceBytes()
		if piece < 16 || piece%16 != 0 {
			return fmt.Errorf("PieceBytes is %d and not a positive multiple of 16", piece)
		}
		piece = min(piece, maxData)
		sizes := []int{0, 1, 15, 16, piece - 1, piece}
		return w.each(func(r *rank) error {
			for call := range 30 {
				e := r.entry()
				e.Exposed = call%4 != 3
				turns := call % 7
				e.Staged = call%3 == 0
				if e.Staged {
					r.show(sizes, int(e.Seq), 0)
				}
				if err := r.enter(e); err != nil {
					return err
				}
				for k := range turns { // none is fine, also if Enter was one
					if k > 0 || !e.Staged {
						r.show(sizes, int(e.Seq), k)
					}
					if err := r.turn(); err != nil {
						return fmt.Errorf("call %d: %w", e.Seq, err)
					}
					if err := r.lookTwice(sizes, int(e.Seq), k); err != nil {
						return fmt.Errorf("call %d, turn %d: %w", e.Seq, k, err)
					}
				}
				if !e.Exposed {
					continue // who is late has still to find what others showed
				}
				if err := r.complete(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// shown is what a rank shows at turn k of a call.
type shown struct {
	piece          []byte
	gapLo, gapHi   int // what it leaves out
	shares         bool
	partLo, partHi int
}

func shows(sizes []int, q, seq, k int) (v shown) {
	n := sizes[(seq+k+5*q)%len(sizes)]
	v.piece = data(n, q, seq, k)
	if (seq+q)%2 == 0 {
		v.gapLo, v.gapHi = n/4, n/4+n/3
	}
	if v.shares = (seq+q+k)%3 != 0; v.shares {
		n := sizes[(seq+2*k+q)%len(sizes)]
		v.partLo, v.partHi = n/3, n
	}
	return v
}

func (v *shown) result(q, seq, k int) []byte { return data(v.partHi-v.partLo, q, seq, k, 1) }

// show stages and shares what this rank shows at turn k of a call.
func (r *rank) show(sizes []int, seq, k int) {
	v := shows(sizes, r.me, seq, k)
	piece := bytes.Clone(v.piece)
	r.Staging().PutInput(piece, v.gapLo, v.gapHi)
	poison(piece) // it has been copied
	if v.shares {
		result := bytes.Clone(v.result(r.me, seq, k))
		r.Staging().PutResult(v.partLo, result)
		poison(result)
	}
}

// lookTwice looks at what all ranks show at turn k of a call.
func (r *rank) lookTwice(sizes []int, seq, k int) error {
	s := r.Staging()
	for range 2 {
		for q := range r.n {
			v := shows(sizes, q, seq, k)
			got := s.Input(q, len(v.piece))
			if err := same(got[:v.gapLo], v.piece[:v.gapLo], "Staged(%d), up to %d", q, v.gapLo); err != nil {
				return err
			}
			if err := same(got[v.gapHi:], v.piece[v.gapHi:], "Staged(%d), from %d on", q, v.gapHi); err != nil {
				return err
			}
			lo, hi, result := s.Result(q)
			if hi-lo != v.partHi-v.partLo || v.shares && lo != v.partLo {
				return fmt.Errorf("Shared(%d) is bytes %d to %d instead of %d to %d", q, lo, hi, v.partLo, v.partHi)
			}
			if err := same(result, v.result(q, seq, k), "Shared(%d)", q); err != nil {
				return err
			}
		}
		r.yield()
	}
	return nil
}
