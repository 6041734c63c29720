package ccl

// Contents is what a rank's input or output of a collective holds.
type Contents uint8

// The contents. Where only the root has the buffer, they are those of the root's.
const (
	Vector     Contents = iota // as many elements on all ranks
	RankBlock                  // the rank's block
	RankBlocks                 // a block for each rank, or from each
)

// Input returns what the input of a rank holds.
func (c Collective) Input() Contents {
	p := &collectives[c]
	switch {
	case p.input == oneBlock:
		return RankBlock
	case p.input == blockForEach || p.view == reduceBlock || p.input == ofRoot && p.parted:
		return RankBlocks
	}
	return Vector
}

// Output returns what the output of a rank holds.
func (c Collective) Output() Contents {
	switch {
	case collectives[c].placed:
		return RankBlocks
	case c.Input() == RankBlocks:
		return RankBlock
	}
	return Vector
}

// FromRoot reports whether only the root has an input; in other rooted collectives only the root
// has an output.
func (c Collective) FromRoot() bool { return collectives[c].input == ofRoot }

// Scans reports whether a rank gets the reduction of the inputs before its own.
func (c Collective) Scans() bool { return collectives[c].view == scanToAll }
