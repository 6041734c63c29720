package transporttest

import (
	"bytes"
	"slices"

	"github.com/goccl/goccl/transport"
)

// buffers are what a rank exposes in calls with a view. They are overwritten before and after
// every call, so that a peer that touches them too early or too late is noticed.
type buffers struct{ in, out []byte }

// resized returns buffers of the lengths in and out.
func (m *buffers) resized(in, out int) (_, _ []byte) {
	m.in, m.out = slices.Grow(m.in[:0], in), slices.Grow(m.out[:0], out)
	return m.in[:in], m.out[:out]
}

func views(h *harness, n int) {
	h.run(func(r *rank) {
		lengths := []int{0, 1, n - 1, n, n + 1, 63, 64, 1000}
		if s := r.Staging(); s != nil {
			p := min(s.PieceBytes(), maxData/4)
			lengths = append(lengths, p-1, p, p+1, 3*p+5)
		} else {
			lengths = append(lengths, 4096, 300<<10)
		}

		for i := range 8 * len(lengths) {
			length := lengths[i%len(lengths)]
			failIfIn(r.makeViewCall(length, i/2%2 == 0, i/len(lengths)%2 == 0), "view of %d bytes, call %d", length, r.seq)
			r.yield()
		}
	})
}

func unevenViews(h *harness, n int) {
	h.run(func(r *rank) {
		unit := 100
		if s := r.Staging(); s != nil {
			unit = min(s.PieceBytes(), maxData/8)
		}
		for i := range 40 {
			length := func(q int) int { return int(mix(uint64(i))>>8+uint64(3*q)) % 4 * unit / 2 }
			failIfIn(r.makeUnevenViewCall(length, false, i%2 == 0), "call %d", r.seq)
			r.yield()
		}
	})
}

// makeViewCall is makeUnevenViewCall with inputs of one length.
func (r *rank) makeViewCall(length int, inPlace, anyRunner bool) error {
	return r.makeUnevenViewCall(func(int) int { return length }, inPlace, anyRunner)
}

// makeUnevenViewCall makes a call in which rank q brings length(q) bytes. The body of rank b moves
// block b of its successor's input to all outputs. An output holds the blocks of the first
// piece of every input, then the blocks of the second pieces, and so on. In shared memory the
// whole input is one piece.
func (r *rank) makeUnevenViewCall(length func(q int) int, inPlace, anyRunner bool) error {
	e := r.nextArrival()
	v := &viewCall{rank: r, seq: int(e.Seq), length: length}
	for q := range r.size {
		v.longest = max(v.longest, length(q))
	}
	v.piece = max(v.longest, 1)
	if s := r.Staging(); s != nil {
		v.piece = s.PieceBytes()
	}

	total := v.divide()
	v.in, v.out = r.mem.resized(length(r.number), total)
	copy(v.in, v.input(r.number))
	if inPlace {
		v.out = v.in
	}
	e.Send, e.Recv, e.Exposed = v.in, v.out, true
	e.AnyRunner, e.Work = anyRunner, 2*total*r.size
	if len(v.in) == 0 {
		e.Send = nil
	}
	if r.Staging() != nil {
		v.putInput(0) // published by Enter if Staged, and else by the first Flip
		e.Staged = anyRunner
	}

	err := r.makeCall(e, func(b *rank) {
		switch {
		case r.Staging() == nil:
			v.copyBlock(b)
		case b != r:
			fail("rank %d runs the body of rank %d, whose memory it does not share", r.number, b.number)

		default:
			v.copyPieces()
		}
	})
	if err == nil {
		for _, s := range v.segments {
			checkSame(v.out[s.at:s.at+s.hi-s.lo], v.input(s.input)[s.lo:s.hi], "output, block %d of input %d from byte %d on", s.rank, s.input, s.lo)
		}

		if !inPlace {
			checkSame(v.in, v.input(r.number), "input after the call")
		}
	}
	poison(v.in) // no rank looks at it any more, also after an error
	poison(v.out)
	return err
}

// viewCall is one rank's part of a view call.
type viewCall struct {
	*rank
	seq            int
	length         func(q int) int
	longest, piece int
	segments       []segment // of piece after piece, by rank
	in, out        []byte
	result         []byte // this rank's, of the last piece
}

// segment is the block of a rank in a piece: bytes lo to hi of an input, which lie at `at` of the
// outputs.
type segment struct{ rank, input, lo, hi, at int }

func (v *viewCall) input(q int) []byte { return data(v.length(q), q, v.seq) }

// part is the piece of rank q's input from `from` on.
func (v *viewCall) part(q, from int) (lo, hi int) {
	n := v.length(q)
	return min(from, n), min(from+v.piece, n)
}

// divide determines the segments, and returns the length of the outputs.
func (v *viewCall) divide() (total int) {
	for from := 0; from < v.longest; from += v.piece {
		for b := range v.size {
			q := (b + 1) % v.size
			lo, hi := v.part(q, from)
			lo, hi = lo+(hi-lo)*b/v.size, lo+(hi-lo)*(b+1)/v.size
			v.segments = append(v.segments, segment{b, q, lo, hi, total})
			total += hi - lo
		}
	}
	return total
}

// copyBlock is the body of rank body in shared memory.
func (v *viewCall) copyBlock(body *rank) {
	for _, s := range v.segments {
		if s.rank != body.number {
			continue
		}

		for q := range v.size {
			send, recv := body.Memory().Buffers(q)
			if len(send) != v.length(q) || len(recv) != len(v.out) {
				fail("Buffers(%d) has %d bytes of input and %d bytes of output instead of %d and %d",
					q, len(send), len(recv), v.length(q), len(v.out))
			}
			end := min(s.hi, len(send))
			start := min(s.lo, end)
			checkSame(send[start:end], v.input(q)[start:end], "input of rank %d, seen by rank %d", q, s.rank)
		}

		from, _ := body.Memory().Buffers(s.input)
		for q := range v.size {
			_, recv := body.Memory().Buffers(q)
			copy(recv[s.at:], from[s.lo:s.hi])
		}
	}
}

func (v *viewCall) putInput(from int) {
	lo, hi := v.part(v.number, from)
	v.Staging().PutInput(v.in[lo:hi], 0, 0)
}

// copyPieces stores the results of a piece in the round after the one that shows its inputs,
// because every rank looks at all of the inputs.
func (v *viewCall) copyPieces() {
	staging, rest := v.Staging(), v.segments
	for from := 0; from < v.longest; from += v.piece {
		v.flip()
		if from > 0 {
			rest = v.takeResults(rest)
		}
		block := rest[v.number]
		first, last := v.part(block.input, from)
		for q := range v.size {
			lo, hi := v.part(q, from)
			checkSame(staging.Input(q, hi-lo), v.input(q)[lo:hi], "Input(%d) of the piece at %d", q, from)
		}

		result := bytes.Clone(staging.Input(block.input, last-first)[block.lo-first : block.hi-first])
		v.flip()
		v.putResult(block.at-rest[0].at, result)
		v.result = result
		if from+v.piece < v.longest {
			v.putInput(from + v.piece)
		}
	}
	v.flip()
	if v.longest > 0 {
		v.takeResults(rest)
	}
}

// takeResults copies all ranks' results of the next piece to the output, and returns the segments
// of the pieces after it.
func (v *viewCall) takeResults(rest []segment) []segment {
	for _, s := range rest[:v.size] {
		if s.rank == v.number {
			copy(v.out[s.at:], v.result)
			continue
		}
		lo, hi, result := v.Staging().Result(s.rank)
		if at := s.at - rest[0].at; lo != at || hi-lo != s.hi-s.lo || len(result) != hi-lo {
			fail("Result(%d) is bytes %d to %d, %d of them, instead of %d bytes from %d on", s.rank, lo, hi, len(result), s.hi-s.lo, at)
		}
		copy(v.out[s.at:], result)
	}
	return rest[v.size:]
}

// putResult stores a result for all other ranks, from byte lo of the piece on.
func (r *rank) putResult(lo int, result []byte) {
	hi := lo + len(result)
	for q := range r.size {
		if q != r.number { // this rank's input may be on its way
			copy(r.Staging().Input(q, hi)[lo:], result)
		}
	}
	r.Staging().PutResult(lo, hi)
}

// flip flips, and may be late for what follows.
func (r *rank) flip() {
	failIfIn(r.Staging().Flip(), "Flip")
	r.yield()
}

// staging looks at pieces after each flip, and again after others may have gone on.
func staging(h *harness, n int) {
	h.run(func(r *rank) {
		s := r.Staging()
		if s == nil {
			return // the ranks share memory
		}
		piece := s.PieceBytes()
		if piece < 16 || piece%16 != 0 {
			fail("PieceBytes is %d and not a positive multiple of 16", piece)
		}

		p := &publisher{rank: r, piece: min(piece, maxData)}
		p.sizes = []int{0, 1, 15, 16, p.piece - 1, p.piece}
		for call := range 30 {
			e := r.nextArrival()
			p.seq = int(e.Seq)
			e.Exposed, e.Staged = call%4 != 3, call%3 == 0
			if e.Staged {
				p.publish(0)
			}
			r.enter(e)
			for k := range call % 7 { // 0 flips are fine, also if Enter was one
				if k > 0 || !e.Staged {
					p.publish(k)
				}
				r.flip()
				for range 2 {
					p.check(k)
					r.yield()
				}
			}
			if e.Exposed { // otherwise a late rank still finds what others published
				r.completeCall()
			}
		}
	})
}

// stagingParts looks at pieces that were put in parts, which differ from flip to flip.
func stagingParts(h *harness, n int) {
	h.run(func(r *rank) {
		s := r.Staging()
		parts, ok := s.(transport.Parts)
		if !ok {
			return // it copies
		}
		piece := min(s.PieceBytes(), maxData)
		for call := range 12 {
			e := r.nextArrival()
			e.Exposed = true
			r.enter(e)

			var last []byte
			for k := range call%3 + 1 {
				length := piece >> ((call + k) % 5)
				part := func(rank int) (lo, hi int) {
					return length * rank / n, length*(rank+1)/n + (call+k)%2*(length-length*(rank+1)/n)
				}
				input := bytes.Clone(data(length, r.number, call, k))

				switch (call + k) % 4 { // the same on all ranks
				case 1:
					parts.PutParts(input, true, part)
				case 3:
					s.PutInput(input, 0, 0)
					poison(input) // it has been copied
				default:
					parts.PutParts(input, false, part)
					poison(input)
				}
				r.flip()
				poison(last) // it has stayed

				last = input
				lo, hi := part(r.number)
				for q := range n {
					if q != r.number {
						checkSame(s.Input(q, length)[lo:hi], data(length, q, call, k)[lo:hi], "call %d, flip %d: bytes %d to %d of Input(%d)", call, k, lo, hi, q)
					}
				}
			}
			r.completeCall()
		}
	})
}

// publisher is a rank that publishes inputs and results by the flips of a call. A result replaces
// a part of the piece that no other rank reads.
type publisher struct {
	*rank
	seq, piece int
	sizes      []int
}

// published is what a rank publishes by a flip.
type published struct {
	input        []byte
	gapLo, gapHi int // of the input: these bytes are not published
	lo, hi       int // of the result
	result       []byte
}

// part returns rank q's part of the piece, where its results lie.
func (p *publisher) part(q int) (lo, hi int) { return p.piece * q / p.size, p.piece * (q + 1) / p.size }

func (p *publisher) publishedBy(q, k int) (d published) {
	n := p.sizes[(p.seq+k+5*q)%len(p.sizes)]
	d.input = data(n, q, p.seq, k)
	if (p.seq+q)%2 == 0 {
		d.gapLo, d.gapHi = n/4, n/4+n/3
	}
	if k > 0 && (p.seq+q+k)%3 != 0 { // otherwise it has no result
		lo, hi := p.part(q)
		d.lo, d.hi = lo+(hi-lo)/4*((p.seq+k)%2), hi-(hi-lo)/3*((p.seq+q)%2)
	}
	d.result = data(d.hi-d.lo, q, p.seq, k, 1)
	return d
}

// publish puts what this rank publishes by flip k.
func (p *publisher) publish(k int) {
	d := p.publishedBy(p.number, k)
	if d.lo < d.hi {
		p.putResult(d.lo, d.result)
	}
	input := bytes.Clone(d.input)
	p.Staging().PutInput(input, d.gapLo, d.gapHi)
	poison(input) // PutInput has copied it
}

// check looks at what all ranks have published by flip k: at the results, and at this rank's part
// of the inputs.
func (p *publisher) check(k int) {
	s := p.Staging()
	from, to := p.part(p.number)
	for q := range p.size {
		d := p.publishedBy(q, k)
		got, want := s.Input(q, len(d.input)), d.input
		for i := min(from, len(want)); i < min(to, len(want)); i++ {
			if (i < d.gapLo || i >= d.gapHi) && got[i] != want[i] {
				fail("call %d, flip %d: Input(%d) differs at byte %d", p.seq, k, q, i)
			}
		}

		if q == p.number {
			continue
		}
		lo, hi, result := s.Result(q)
		if hi-lo != d.hi-d.lo || lo < hi && lo != d.lo {
			fail("call %d, flip %d: Result(%d) is bytes %d to %d instead of %d to %d", p.seq, k, q, lo, hi, d.lo, d.hi)
		}
		checkSame(result, d.result, "call %d, flip %d: Result(%d)", p.seq, k, q)
	}
}
