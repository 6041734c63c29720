package ccl

import "context"

// parts is what a rank brings to a gather or a scatter: its part, and the whole, one
// block for each rank, if it has that.
type parts struct {
	blocks
	part, whole         Buffer
	partName, wholeName string
	place               string // what the part is of the whole
}

func partsOf(coll Collective, send, recv Buffer) parts {
	b := blocks{operation: coll.String()}
	if coll == CollScatter || coll == collScatterLengths {
		return parts{b, recv, send, "recv", "send", "block of"}
	}
	return parts{b, send, recv, "send", "recv", "place in"}
}

// check checks the parts where there is the whole.
func (p *parts) check(ranks, rank int) error {
	if err := p.sum(ranks); err != nil {
		return err
	}
	if n := p.count(rank); p.part.Len() != n {
		return p.wrong(p.partName, n, p.part.Len())
	}
	if err := p.fit(p.wholeName, p.whole.Len()); err != nil {
		return err
	}
	if p.counts == nil && p.whole.Len() != p.total {
		return p.wrong(p.wholeName, p.total, p.whole.Len())
	}
	if !within(p.part, p.whole, p.at(rank)) {
		return &InvalidArgumentError{p.operation, p.partName + " overlaps " + p.wholeName + ", but is not this rank's " + p.place + " it"}
	}
	return nil
}

// none refuses what belongs to the root alone.
func (p *parts) none() error {
	switch {
	case p.whole.Len() > 0:
		return p.wrong(p.wholeName, 0, p.whole.Len())
	case len(p.counts) > 0:
		return p.wrong("counts", 0, len(p.counts))
	case len(p.displs) > 0:
		return p.wrong("displs", 0, len(p.displs))
	}
	return nil
}

// rooted makes a gather or a scatter of equal blocks.
func (c *Communicator) rooted(ctx context.Context, coll Collective, dtype DType, send, recv Buffer, root int, opts []CallOption) error {
	if err := c.begin(ctx, coll, opts); err != nil {
		return err
	}
	p := partsOf(coll, send, recv)
	p.each = p.part.Len()
	err := c.checkRoot(root)
	switch {
	case err != nil:
	case c.rank == root:
		err = p.check(c.size, c.rank)
	default:
		if err = p.none(); err == nil {
			err = p.sum(c.size)
		}
	}
	if err != nil {
		return c.refuse(err)
	}
	return c.moveBlocks(ctx, c.ask(coll, dtype, send, recv, opts), &p.blocks, root)
}

// rootedV makes a gather or a scatter of blocks whose lengths root alone knows. coll
// is the exchange of the lengths.
func (c *Communicator) rootedV(ctx context.Context, coll Collective, dtype DType, send, recv Buffer, counts, displs []int, root int, opts []CallOption) error {
	if err := c.begin(ctx, coll, opts); err != nil {
		return err
	}
	p := partsOf(coll, send, recv)
	p.counts, p.displs = counts, displs
	err := c.checkRoot(root)
	switch {
	case err != nil:
	case c.rank != root:
		err = p.none()
	default:
		p.counts = some(counts)
		err = p.check(c.size, c.rank)
	}
	if err != nil {
		return c.refuse(err)
	}
	if err := c.agreeOnLengths(ctx, coll, dtype, p.part.Len(), counts, root, opts); err != nil {
		c.end()
		return err
	}
	b := blocks{operation: p.operation, counts: c.lengths.counts, displs: displs}
	if err := b.sum(c.size); err != nil {
		return c.refuse(err)
	}
	then := CollGather
	if coll == collScatterLengths {
		then = CollScatter
	}
	r := c.ask(then, dtype, send, recv, opts)
	r.begun = true
	return c.moveBlocks(ctx, r, &b, root)
}

// moveBlocks makes the call of a gather or a scatter that has been checked.
func (c *Communicator) moveBlocks(ctx context.Context, r *request, b *blocks, root int) error {
	if r.coll == CollScatter {
		return c.scatterBlocks(ctx, r, b, root)
	}
	return c.gatherBlocks(ctx, r, b, root)
}

func (c *Communicator) gatherBlocks(ctx context.Context, r *request, b *blocks, root int) error {
	b.put(r)
	r.root, r.displs = root, b.displs
	r.bytes, r.total = b.longest<<r.in.shift, b.total<<r.in.shift
	if c.size == 1 {
		at := b.at(0)
		return c.alone(ctx, r, r.out.Slice(at, at+r.in.Len()), r.in)
	}
	return c.run(ctx, r)
}

func (c *Communicator) scatterBlocks(ctx context.Context, r *request, b *blocks, root int) error {
	b.put(r)
	r.root = root
	r.bytes, r.total = b.total<<r.out.shift, b.longest<<r.out.shift
	if c.rank == root {
		r.in = c.pack(r.in, b)
	}
	if c.size == 1 {
		return c.alone(ctx, r, r.out, r.in)
	}
	return c.run(ctx, r)
}

// pack returns the blocks of a buffer one after the other: in the buffer itself, if
// that is how they lie there, or else in memory of the communicator.
func (c *Communicator) pack(send Buffer, b *blocks) Buffer {
	packed := true
	for at, r := 0, 0; r < len(b.displs) && packed; r++ {
		packed = b.displs[r] == at || b.counts[r] == 0
		at += b.counts[r]
	}
	if packed {
		return send.Slice(0, b.total)
	}
	to := c.spareBuffer(b.total, send.shift)
	at := 0
	for r, n := range b.counts {
		copy(to.Slice(at, at+n).data, send.Slice(b.displs[r], b.displs[r]+n).data)
		at += n
	}
	return to
}

// spareBuffer returns memory of the communicator for n elements of a call's input, until
// the next call.
func (c *Communicator) spareBuffer(n int, shift uint8) Buffer {
	return Buffer{data: c.spare.bytes(n << shift), shift: shift}
}
