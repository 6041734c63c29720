package ccl

// Contents is what a rank's input or output of a collective holds.
type Contents uint8

// The contents. Where only the root has the buffer, they are those of the root's.
const (
	Vector     Contents = iota // as many elements on all ranks
	RankBlock                  // the rank's block
	RankBlocks                 // a block for each rank, or from each
)

// Traits are the properties of a collective.
type Traits struct {
	Reduces       bool // it takes an Op
	Rooted        bool // one rank, the root, has a role of its own, as in a broadcast
	FromRoot      bool // only the root has an input; in other rooted collectives only it has an output
	Scans         bool // a rank gets the reduction of the inputs before its own
	Input, Output Contents
}

// Traits returns the properties of c, none for a value that is no collective.
func (c Collective) Traits() (t Traits) {
	if int(c) >= len(collectives) {
		return t
	}
	p := &collectives[c]
	t = Traits{Reduces: p.reduces, Rooted: p.rooted, FromRoot: p.input == ofRoot, Scans: p.view == scanToAll}
	switch {
	case p.input == oneBlock:
		t.Input = RankBlock
	case p.input == blockForEach || p.view == reduceBlock || p.input == ofRoot && p.parted:
		t.Input, t.Output = RankBlocks, RankBlock
	}

	if p.placed {
		t.Output = RankBlocks
	}
	return t
}
