package transporttest

import "bytes"

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

func unevenWindows(h *harness, n int) {
	h.each(n, 0, "", func(r *rank) {
		unit := 100
		if s := r.Staging(); s != nil {
			unit = min(s.PieceBytes(), maxData/8)
		}
		for i := range 40 {
			length := func(q int) int { return int(mix(uint64(i))>>8+uint64(3*q)) % 4 * unit / 2 }
			mustIn(r.unevenWindow(length, false, i%2 == 0), "call %d", r.seq)
			r.yield()
		}
	})
}

// window is unevenWindow with inputs of one length.
func (r *rank) window(length int, inPlace, anyRunner bool) error {
	return r.unevenWindow(func(int) int { return length }, inPlace, anyRunner)
}

// unevenWindow makes a call in which rank q brings length(q) bytes. The body of rank b moves
// block b of its successor's input to all outputs. An output holds the blocks of the first
// piece of every input, then the blocks of the second pieces, and so on. In shared memory the
// whole input is one piece.
func (r *rank) unevenWindow(length func(q int) int, inPlace, anyRunner bool) error {
	e := r.arrival()
	w := &windowCall{rank: r, seq: int(e.Seq), length: length}
	for q := range r.n {
		w.longest = max(w.longest, length(q))
	}
	w.piece = max(w.longest, 1)
	if s := r.Staging(); s != nil {
		w.piece = s.PieceBytes()
	}
	total := 0
	w.blocks(func(_, at, _, lo, hi int) { total = at + hi - lo })
	w.in, w.out = r.mem.resized(length(r.me), total)
	copy(w.in, w.input(r.me))
	if inPlace {
		w.out = w.in
	}
	e.Send, e.Recv, e.Exposed = w.in, w.out, true
	e.AnyRunner, e.Work = anyRunner, 2*total*r.n
	if len(w.in) == 0 {
		e.Send = nil
	}
	if r.Staging() != nil {
		w.putInput(0) // published by Enter if Staged, and else by the first Flip
		e.Staged = anyRunner
	}
	err := r.call(e, func(b *rank) {
		switch {
		case r.Staging() == nil:
			w.copyBlock(b)
		case b != r:
			fail("rank %d runs the body of rank %d, whose memory it does not share", r.me, b.me)
		default:
			w.copyPieces()
		}
	})
	if err == nil {
		w.blocks(func(b, at, q, lo, hi int) {
			same(w.out[at:at+hi-lo], w.input(q)[lo:hi], "output, block %d of input %d from byte %d on", b, q, lo)
		})
		if !inPlace {
			same(w.in, w.input(r.me), "input after the call")
		}
	}
	poison(w.in) // no rank looks at it any more, also after an error
	poison(w.out)
	return err
}

// windowCall is one rank's part of a window call.
type windowCall struct {
	*rank
	seq            int
	length         func(q int) int
	longest, piece int
	in, out        []byte
}

func (w *windowCall) input(q int) []byte { return data(w.length(q), q, w.seq) }

// part is the piece of rank q's input from `from` on.
func (w *windowCall) part(q, from int) (lo, hi int) {
	n := w.length(q)
	return min(from, n), min(from+w.piece, n)
}

// blocks calls do for the block of every rank b in every piece: it lies at `at` of the outputs
// and is bytes lo to hi of rank q's input.
func (w *windowCall) blocks(do func(b, at, q, lo, hi int)) {
	at := 0
	for from := 0; from < w.longest; from += w.piece {
		at = w.blocksOf(from, at, do)
	}
}

func (w *windowCall) blocksOf(from, at int, do func(b, at, q, lo, hi int)) int {
	for b := range w.n {
		q := (b + 1) % w.n
		lo, hi := w.part(q, from)
		lo, hi = lo+(hi-lo)*b/w.n, lo+(hi-lo)*(b+1)/w.n
		do(b, at, q, lo, hi)
		at += hi - lo
	}
	return at
}

// copyBlock is the body of rank body in shared memory.
func (w *windowCall) copyBlock(body *rank) {
	w.blocks(func(b, at, source, lo, hi int) {
		if b != body.me {
			return
		}
		for q := range w.n {
			send, recv := body.Memory().Buffers(q)
			if len(send) != w.length(q) || len(recv) != len(w.out) {
				fail("Buffers(%d) has %d bytes of input and %d bytes of output instead of %d and %d",
					q, len(send), len(recv), w.length(q), len(w.out))
			}
			end := min(hi, len(send))
			start := min(lo, end)
			same(send[start:end], w.input(q)[start:end], "input of rank %d, seen by rank %d", q, b)
		}
		from, _ := body.Memory().Buffers(source)
		for q := range w.n {
			_, recv := body.Memory().Buffers(q)
			copy(recv[at:], from[lo:hi])
		}
	})
}

func (w *windowCall) putInput(from int) {
	lo, hi := w.part(w.me, from)
	w.Staging().PutInput(w.in[lo:hi], 0, 0)
}

// copyPieces puts each input piece, except the first, together with the result of the piece
// before.
func (w *windowCall) copyPieces() {
	s := w.Staging()
	end := 0 // of the output so far
	for from := 0; from < w.longest; from += w.piece {
		w.flip()
		if from > 0 {
			end = w.takeResults(from-w.piece, end)
		}
		for q := range w.n {
			lo, hi := w.part(q, from)
			same(s.Input(q, hi-lo), w.input(q)[lo:hi], "Input(%d) of the piece at %d", q, from)
		}
		w.blocksOf(from, 0, func(b, at, q, lo, hi int) {
			if b == w.me {
				first, last := w.part(q, from)
				s.PutResult(at, s.Input(q, last-first)[lo-first:hi-first])
			}
		})
		if from+w.piece < w.longest {
			w.putInput(from + w.piece)
		}
	}
	w.flip()
	if w.longest > 0 {
		w.takeResults((w.longest-1)/w.piece*w.piece, end)
	}
}

// takeResults copies all ranks' results of a piece to the output from `end` on.
func (w *windowCall) takeResults(from, end int) int {
	return end + w.blocksOf(from, 0, func(b, at, _, lo, hi int) {
		gotLo, gotHi, result := w.Staging().Result(b)
		if gotLo != at || gotHi-gotLo != hi-lo || len(result) != hi-lo {
			fail("Result(%d) is bytes %d to %d, %d of them, instead of %d bytes from %d on", b, gotLo, gotHi, len(result), hi-lo, at)
		}
		copy(w.out[end+at:], result)
	})
}

// flip flips, and may be late for what follows.
func (r *rank) flip() {
	mustIn(r.Staging().Flip(), "Flip")
	r.yield()
}

// staging looks at pieces after each flip, and again after others may have gone on.
func staging(h *harness, n int) {
	h.each(n, 0, "", func(r *rank) {
		s := r.Staging()
		if s == nil {
			return // the ranks share memory
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
