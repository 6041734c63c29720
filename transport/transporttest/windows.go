package transporttest

import (
	"bytes"

	"github.com/goccl/goccl/transport"
)

// buffers are what a rank exposes in windows. They are overwritten before and after
// every call, so that a peer that touches them too early or too late is noticed.
type buffers struct{ in, out []byte }

// resized returns buffers of the lengths in and out.
func (m *buffers) resized(in, out int) (_, _ []byte) {
	if len(m.in) < in {
		m.in = make([]byte, in)
	}
	if len(m.out) < out {
		m.out = make([]byte, out)
	}
	return m.in[:in], m.out[:out]
}

func windows(h *harness, n int) {
	h.each(n, 0, "", func(r *rank) {
		lengths := []int{0, 1, n - 1, n, n + 1, 63, 64, 1000}
		if s := r.Staging(); s != nil {
			p := min(s.PieceBytes(), maxData/4)
			lengths = append(lengths, p-1, p, p+1, 3*p+5)
		} else {
			lengths = append(lengths, 4096, 300<<10)
		}
		for i := range 8 * len(lengths) {
			length := lengths[i%len(lengths)]
			mustIn(r.window(length, i/2%2 == 0, i/len(lengths)%2 == 0), "window of %d bytes, call %d", length, r.seq)
			r.yield()
		}
	})
}

// window makes a call in which rank b's body copies block b of its successor's input to
// block b of all outputs.
func (r *rank) window(length int, inPlace, anyRunner bool) error {
	e := r.arrival()
	in, out := r.mem.resized(length, length)
	copy(in, data(length, r.me, int(e.Seq)))
	if inPlace {
		out = in
	}
	e.Send, e.Recv, e.Exposed = in, out, true
	e.AnyRunner, e.Work = anyRunner, 2*length*r.n
	piece := max(length, 1)
	if s := r.Staging(); s != nil {
		piece = s.PieceBytes()
		r.putFirst(e, in, anyRunner)
	}
	err := r.call(e, func(b *rank) {
		switch {
		case r.Staging() == nil:
			b.copyBlocks(e.Seq, length)
		case b != r:
			fail("rank %d runs the body of rank %d, whose memory it does not share", r.me, b.me)
		default:
			r.copyPieces(e.Seq, in, out)
		}
	})
	if err == nil {
		r.checkWindow(e.Seq, in, out, piece)
	}
	poison(in) // no rank looks at it any more, also after an error
	poison(out)
	return err
}

// checkWindow verifies the buffers after a window call.
func (r *rank) checkWindow(seq uint64, in, out []byte, piece int) {
	length := len(in)
	for at := 0; at < length; at += piece {
		end := min(at+piece, length)
		for b := range r.n {
			lo, hi := block(end-at, b, r.n)
			want := data(length, (b+1)%r.n, int(seq))[at+lo : at+hi]
			same(out[at+lo:at+hi], want, "output, block %d of the piece at %d", b, at)
		}
	}
	if length > 0 && &in[0] != &out[0] {
		same(in, data(length, r.me, int(seq)), "input after the call")
	}
}

// block is the part of n bytes that belongs to rank of ranks.
func block(n, rank, ranks int) (lo, hi int) { return n * rank / ranks, n * (rank + 1) / ranks }

func (r *rank) copyBlocks(seq uint64, length int) {
	lo, hi := block(length, r.me, r.n)
	var from []byte
	for q := range r.n {
		send, recv := r.Memory().Buffers(q)
		if len(send) != length || len(recv) != length {
			fail("Buffers(%d) are %d and %d bytes long", q, len(send), len(recv))
		}
		same(send[lo:hi], data(length, q, int(seq))[lo:hi], "input of rank %d, seen by rank %d", q, r.me)
		if q == (r.me+1)%r.n {
			from = send[lo:hi]
		}
	}
	for q := range r.n {
		_, recv := r.Memory().Buffers(q)
		copy(recv[lo:hi], from)
	}
}

// putFirst puts the first piece of a call's input, which Enter publishes if flips is
// true, and else the first Flip.
func (r *rank) putFirst(e *transport.Arrival, in []byte, flips bool) {
	s := r.Staging()
	s.PutInput(in[:min(s.PieceBytes(), len(in))], 0, 0)
	e.Staged = flips
}

// flip flips, and may be late for what follows.
func (r *rank) flip() {
	mustIn(r.Staging().Flip(), "Flip")
	r.yield()
}

// copyPieces puts each input piece, except the first, together with the result of the
// piece before.
func (r *rank) copyPieces(seq uint64, in, out []byte) {
	s := r.Staging()
	piece := s.PieceBytes()
	for at := 0; at < len(in); at += piece {
		end := min(at+piece, len(in))
		r.flip()
		if at > 0 {
			r.takeResults(out, at-piece, at)
		}
		lo, hi := block(end-at, r.me, r.n)
		for q := range r.n {
			same(s.Input(q, end-at), data(len(in), q, int(seq))[at:end], "Input(%d) of the piece at %d", q, at)
		}
		s.PutResult(lo, s.Input((r.me+1)%r.n, end-at)[lo:hi])
		if end < len(in) {
			s.PutInput(in[end:min(end+piece, len(in))], 0, 0)
		}
	}
	r.flip()
	if len(in) > 0 {
		r.takeResults(out, (len(in)-1)/piece*piece, len(in))
	}
}

// takeResults copies all ranks' results of the piece from `at` to end.
func (r *rank) takeResults(out []byte, at, end int) {
	for q := range r.n {
		lo, hi, result := r.Staging().Result(q)
		if wantLo, wantHi := block(end-at, q, r.n); lo != wantLo || hi != wantHi || len(result) != hi-lo {
			fail("Result(%d) is bytes %d to %d, %d of them, instead of %d to %d", q, lo, hi, len(result), wantLo, wantHi)
		}
		copy(out[at+lo:], result)
	}
}

// unevenWindows gathers inputs of different lengths.
func unevenWindows(h *harness, n int) {
	h.each(n, 0, "", func(r *rank) {
		unit := 100
		if s := r.Staging(); s != nil {
			unit = min(s.PieceBytes(), maxData/8)
		}
		for i := range 40 {
			length := func(q int) int { return int(mix(uint64(i))>>8+uint64(3*q)) % 4 * unit / 2 }
			mustIn(r.gather(length, i%2 == 0), "call %d", r.seq)
			r.yield()
		}
	})
}

// gather makes a call in which every rank gets all inputs, length(q) bytes of rank q, one
// after the other. The body of rank b moves its successor's.
func (r *rank) gather(length func(q int) int, anyRunner bool) error {
	at := make([]int, r.n+1)
	longest := 0
	for q := range r.n {
		at[q+1] = at[q] + length(q)
		longest = max(longest, length(q))
	}
	e := r.arrival()
	mine, total := length(r.me), at[r.n]
	in, out := r.mem.resized(mine, total)
	copy(in, data(mine, r.me, int(e.Seq)))
	if mine == 0 {
		in = nil
	}
	e.Send, e.Recv, e.Exposed = in, out, true
	e.AnyRunner, e.Work = anyRunner, total
	if r.Staging() != nil {
		r.putFirst(e, in, anyRunner)
	}
	err := r.call(e, func(b *rank) {
		if r.Staging() != nil {
			r.gatherPieces(in, out, at, longest)
			return
		}
		q := (b.me + 1) % b.n
		send, _ := b.Memory().Buffers(q)
		if len(send) != length(q) {
			fail("rank %d sees %d bytes of input of rank %d instead of %d", b.me, len(send), q, length(q))
		}
		for to := range b.n {
			_, recv := b.Memory().Buffers(to)
			if len(recv) != total {
				fail("rank %d sees %d bytes of output of rank %d instead of %d", b.me, len(recv), to, total)
			}
			copy(recv[at[q]:], send)
		}
	})
	if err != nil {
		return err
	}
	for q := range r.n {
		same(out[at[q]:at[q+1]], data(length(q), q, int(e.Seq)), "the input of rank %d", q)
	}
	poison(in)
	poison(out)
	return nil
}

func (r *rank) gatherPieces(in, out []byte, at []int, longest int) {
	s := r.Staging()
	piece := s.PieceBytes()
	for lo := 0; lo < longest; lo += piece {
		if lo > 0 {
			s.PutInput(in[min(lo, len(in)):min(lo+piece, len(in))], 0, 0)
		}
		r.flip()
		for q := range r.n {
			length := at[q+1] - at[q]
			n := min(lo+piece, length) - min(lo, length)
			copy(out[at[q]+min(lo, length):], s.Input(q, n))
		}
	}
}

// staging looks at pieces after each flip, and again after others may have gone on.
func staging(h *harness, n int) {
	h.each(n, 0, "", func(r *rank) {
		s := r.Staging()
		if s == nil {
			return // there is Memory
		}
		piece := s.PieceBytes()
		if piece < 16 || piece%16 != 0 {
			fail("PieceBytes is %d and not a positive multiple of 16", piece)
		}
		piece = min(piece, maxData)
		sizes := []int{0, 1, 15, 16, piece - 1, piece}
		for call := range 30 {
			e := r.arrival()
			e.Exposed, e.Staged = call%4 != 3, call%3 == 0
			if e.Staged {
				r.publish(sizes, int(e.Seq), 0)
			}
			r.enter(e)
			for k := range call % 7 { // 0 flips are fine, also if Enter was one
				if k > 0 || !e.Staged {
					r.publish(sizes, int(e.Seq), k)
				}
				r.flip()
				for range 2 {
					r.checkPublished(sizes, int(e.Seq), k)
					r.yield()
				}
			}
			if e.Exposed { // otherwise a late rank still finds what others published
				r.complete()
			}
		}
	})
}

// published is what a rank publishes by flip k of a call.
type published struct {
	input          []byte
	gapLo, gapHi   int // what it leaves out
	lo, hi         int // of the result
	result         []byte
	resultIsAbsent bool
}

func publishedBy(q int, sizes []int, seq, k int) (p published) {
	n := sizes[(seq+k+5*q)%len(sizes)]
	p.input = data(n, q, seq, k)
	if (seq+q)%2 == 0 {
		p.gapLo, p.gapHi = n/4, n/4+n/3
	}
	if p.resultIsAbsent = (seq+q+k)%3 == 0; !p.resultIsAbsent {
		n := sizes[(seq+2*k+q)%len(sizes)]
		p.lo, p.hi = n/3, n
	}
	p.result = data(p.hi-p.lo, q, seq, k, 1)
	return p
}

// publish puts what this rank publishes by flip k of a call.
func (r *rank) publish(sizes []int, seq, k int) {
	p := publishedBy(r.me, sizes, seq, k)
	input := bytes.Clone(p.input)
	r.Staging().PutInput(input, p.gapLo, p.gapHi)
	poison(input) // PutInput has copied it
	if !p.resultIsAbsent {
		result := bytes.Clone(p.result)
		r.Staging().PutResult(p.lo, result)
		poison(result)
	}
}

// checkPublished looks at what all ranks have published by flip k of a call.
func (r *rank) checkPublished(sizes []int, seq, k int) {
	s := r.Staging()
	for q := range r.n {
		p := publishedBy(q, sizes, seq, k)
		got := s.Input(q, len(p.input))
		same(got[:p.gapLo], p.input[:p.gapLo], "call %d, flip %d: Input(%d), up to %d", seq, k, q, p.gapLo)
		same(got[p.gapHi:], p.input[p.gapHi:], "call %d, flip %d: Input(%d), from %d on", seq, k, q, p.gapHi)
		lo, hi, result := s.Result(q)
		if hi-lo != p.hi-p.lo || !p.resultIsAbsent && lo != p.lo {
			fail("call %d, flip %d: Result(%d) is bytes %d to %d instead of %d to %d", seq, k, q, lo, hi, p.lo, p.hi)
		}
		same(result, p.result, "call %d, flip %d: Result(%d)", seq, k, q)
	}
}
