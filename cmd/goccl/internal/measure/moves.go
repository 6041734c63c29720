package measure

import (
	"iter"

	"github.com/goccl/goccl/ccl"
)

// move is what an operator does in one direction, on one rank.
type move struct {
	in, out []int                         // shapes of the input and the result
	floor   func(in, out []float32) error // does the same with what package ccl has
	want    iter.Seq[stretch]             // the result
}

// stretch is a part of a result: n elements of a pattern, from an offset on.
type stretch struct {
	at, n   int
	pattern []float32
	offset  int
}

// none is the shape of a tensor that a rank does not have.
var none = []int{0}

// nothing is its contents.
func nothing(func(stretch) bool) {}

// mover makes the moves of a rank.
type mover struct {
	comm        *ccl.Communicator
	rank, ranks int
	rows, cols  int         // of this rank's part of the input of forward
	inputs      [][]float32 // pattern of each rank's input
	sum         []float32   // pattern of their sum
}

func (m mover) shape() []int { return []int{m.rows, m.cols} }

func (m mover) elements() int { return m.rows * m.cols }

// onRoot returns the shape on rank 0, and none on the others.
func (m mover) onRoot() []int {
	if m.rank == 0 {
		return m.shape()
	}
	return none
}

// copyRows copies rows of that many elements. Steps are the distances of rows.
func copyRows(to []float32, stepTo int, from []float32, stepFrom, rows, n int) {
	for i := range rows {
		copy(to[i*stepTo:][:n], from[i*stepFrom:])
	}
}

// one is a result that is a pattern from an offset on.
func one(n int, pattern []float32, offset int) iter.Seq[stretch] {
	return func(yield func(stretch) bool) { yield(stretch{0, n, pattern, offset}) }
}

func (m mover) sumToAll() move {
	return move{
		in: m.shape(), out: m.shape(), want: one(m.elements(), m.sum, 0),
		floor: func(in, out []float32) error { return ccl.AllReduce(background, m.comm, in, out, ccl.Sum) },
	}
}

// spread copies the tensor of rank 0 to all ranks, itself included.
func (m mover) spread() move {
	return move{
		in: m.onRoot(), out: m.shape(), want: one(m.elements(), m.inputs[0], 0),
		floor: func(in, out []float32) error {
			if m.rank > 0 {
				return ccl.Broadcast(background, m.comm, out, 0)
			}
			copy(out, in)
			return ccl.Broadcast(background, m.comm, in, 0)
		},
	}
}

// collect sums the tensors of all ranks on rank 0.
func (m mover) collect() move {
	made := move{in: m.shape(), out: m.onRoot(), want: one(m.elements(), m.sum, 0)}
	if m.rank > 0 {
		made.want = nothing
	}
	made.floor = func(in, out []float32) error { return ccl.Reduce(background, m.comm, in, out, ccl.Sum, 0) }
	return made
}

// toColumns moves a tensor that is divided by rows: each rank gets its columns. Blocks arrive at their places.
func (m mover) toColumns() move {
	n := m.cols / m.ranks
	block := m.rows * n
	counts, places := make([]int, m.ranks), make([]int, m.ranks)
	for r := range m.ranks {
		counts[r], places[r] = block, r*block
	}
	counts[m.rank] = 0
	sent := make([]float32, (m.ranks-1)*block)
	return move{
		in: m.shape(), out: []int{m.ranks * m.rows, n},
		floor: func(in, out []float32) error {
			at := 0
			for r, count := range counts {
				if count > 0 {
					copyRows(sent[at:], n, in[r*n:], m.cols, m.rows, n)
					at += count
				}
			}
			copyRows(out[m.rank*block:], n, in[m.rank*n:], m.cols, m.rows, n)
			return ccl.AllToAllV(background, m.comm, sent, counts, nil, out, counts, places)
		},
		want: func(yield func(stretch) bool) {
			for i := range m.ranks * m.rows {
				if !yield(stretch{i * n, n, m.inputs[i/m.rows], i%m.rows*m.cols + m.rank*n}) {
					return
				}
			}
		},
	}
}

// toRows is the reverse of toColumns.
func (m mover) toRows() move {
	n := m.cols / m.ranks
	block := m.rows * n
	counts := make([]int, m.ranks)
	for r := range m.ranks {
		counts[r] = block
	}
	counts[m.rank] = 0
	sent, received := make([]float32, (m.ranks-1)*block), make([]float32, (m.ranks-1)*block)
	return move{
		in: []int{m.ranks * m.rows, n}, out: m.shape(),
		floor: func(in, out []float32) error {
			copy(sent, in[:m.rank*block])
			copy(sent[m.rank*block:], in[(m.rank+1)*block:])
			copyRows(out[m.rank*n:], m.cols, in[m.rank*block:], n, m.rows, n)
			err := ccl.AllToAllV(background, m.comm, sent, counts, nil, received, counts, nil)
			at := 0
			for r, count := range counts {
				if count > 0 {
					copyRows(out[r*n:], m.cols, received[at:], n, m.rows, n)
					at += count
				}
			}
			return err
		},
		want: func(yield func(stretch) bool) {
			for i := range m.rows * m.ranks {
				row, r := i/m.ranks, i%m.ranks
				if !yield(stretch{i * n, n, m.inputs[r], (m.rank*m.rows + row) * n}) {
					return
				}
			}
		},
	}
}

// beside calls f with each neighbour, in the order in which none waits in vain, and whether it is the one on the
// right.
func (m mover) beside(f func(rank int, right bool) error) error {
	right := m.rank%2 == 0
	for range 2 {
		rank := m.rank - 1
		if right {
			rank = m.rank + 1
		}
		if rank >= 0 && rank < m.ranks {
			if err := f(rank, right); err != nil {
				return err
			}
		}
		right = !right
	}
	return nil
}

// swap exchanges a column of the result with a neighbour.
func (m mover) swap(sent, received, out []float32, column, rank int) error {
	for i := range sent {
		sent[i] = out[i*m.cols+column]
	}
	_, err := ccl.SendRecv(background, m.comm, sent, rank, received, rank, 0)
	return err
}

// fillGhosts copies the tensor, whose first and last columns are ghost cells, and fills them with the columns of the
// neighbours.
func (m mover) fillGhosts() move {
	sent, received := make([]float32, m.rows), make([]float32, m.rows)
	return move{
		in: m.shape(), out: m.shape(),
		floor: func(in, out []float32) error {
			copy(out, in)
			return m.beside(func(rank int, right bool) error {
				own, ghost := 1, 0
				if right {
					own, ghost = m.cols-2, m.cols-1
				}
				err := m.swap(sent, received, out, own, rank)
				for i, x := range received {
					out[i*m.cols+ghost] = x
				}
				return err
			})
		},
		want: func(yield func(stretch) bool) {
			for at := 0; at < m.elements(); at += m.cols {
				first, last := stretch{at, 1, m.inputs[m.rank], at}, stretch{at + m.cols - 1, 1, m.inputs[m.rank], at + m.cols - 1}
				if m.rank > 0 {
					first.pattern, first.offset = m.inputs[m.rank-1], at+m.cols-2
				}
				if m.rank < m.ranks-1 {
					last.pattern, last.offset = m.inputs[m.rank+1], at+1
				}
				if !yield(first) || !yield(stretch{at + 1, m.cols - 2, m.inputs[m.rank], at + 1}) || !yield(last) {
					return
				}
			}
		},
	}
}

// addGhosts copies the tensor, adds its ghost cells to the columns of the neighbours, and clears them.
func (m mover) addGhosts() move {
	sent, received := make([]float32, m.rows), make([]float32, m.rows)
	mine, zero := m.inputs[m.rank], make([]float32, 2*period)
	// The neighbour's ghost cells are `apart` elements from those that they are added to.
	added := func(rank, apart int) []float32 {
		other := m.inputs[rank][((apart%period)+period)%period:]
		return pattern(func(i int) float32 { return mine[i] + other[i] })
	}
	ends := [2]stretch{{0, 1, mine, 0}, {m.cols - 1, 1, mine, m.cols - 1}} // of a row
	edges := [2]stretch{{1, 1, mine, 1}, {m.cols - 2, 1, mine, m.cols - 2}}
	if m.rank > 0 {
		ends[0].pattern, edges[0].pattern = zero, added(m.rank-1, m.cols-2)
	}
	if m.rank < m.ranks-1 {
		ends[1].pattern, edges[1].pattern = zero, added(m.rank+1, 2-m.cols)
	}
	row := []stretch{ends[0], edges[0], {2, m.cols - 4, mine, 2}, edges[1], ends[1]}
	return move{
		in: m.shape(), out: m.shape(),
		floor: func(in, out []float32) error {
			copy(out, in)
			return m.beside(func(rank int, right bool) error {
				own, ghost := 1, 0
				if right {
					own, ghost = m.cols-2, m.cols-1
				}
				err := m.swap(sent, received, out, ghost, rank)
				for i, x := range received {
					out[i*m.cols+ghost] = 0
					out[i*m.cols+own] += x
				}
				return err
			})
		},
		want: func(yield func(stretch) bool) {
			for at := 0; at < m.elements(); at += m.cols {
				for _, s := range row {
					if !yield(stretch{at + s.at, s.n, s.pattern, at + s.offset}) {
						return
					}
				}
			}
		},
	}
}

// ofPart returns the move whose parts are those into which the tensor is divided in one dimension.
func ofPart(dim int, of func(mover) move) func(mover) move {
	return func(m mover) move {
		if dim == 0 {
			m.rows /= m.ranks
		} else {
			m.cols /= m.ranks
		}
		return of(m)
	}
}

// whole returns the shape of all ranks' parts together.
func (m mover) whole(dim int) []int {
	shape := m.shape()
	shape[dim] *= m.ranks
	return shape
}

// gather copies the parts of all ranks to each.
func gather(dim int) func(mover) move {
	return func(m mover) move {
		n, wide := m.elements(), m.ranks*m.cols
		if dim == 0 {
			return move{
				in: m.shape(), out: m.whole(dim),
				floor: func(in, out []float32) error { return ccl.AllGather(background, m.comm, in, out) },
				want: func(yield func(stretch) bool) {
					for r, input := range m.inputs {
						if !yield(stretch{r * n, n, input, 0}) {
							return
						}
					}
				},
			}
		}
		received := make([]float32, m.ranks*n)
		return move{
			in: m.shape(), out: m.whole(dim),
			floor: func(in, out []float32) error {
				err := ccl.AllGather(background, m.comm, in, received)
				for r := range m.ranks {
					copyRows(out[r*m.cols:], wide, received[r*n:], m.cols, m.rows, m.cols)
				}
				return err
			},
			want: func(yield func(stretch) bool) {
				for i := range m.rows * m.ranks {
					if !yield(stretch{i * m.cols, m.cols, m.inputs[i%m.ranks], i / m.ranks * m.cols}) {
						return
					}
				}
			},
		}
	}
}

// scatter sums the tensors of all ranks, and keeps this rank's part.
func scatter(dim int) func(mover) move {
	return func(m mover) move {
		n, wide := m.elements(), m.ranks*m.cols
		if dim == 0 {
			return move{
				in: m.whole(dim), out: m.shape(), want: one(n, m.sum, m.rank*n),
				floor: func(in, out []float32) error { return ccl.ReduceScatter(background, m.comm, in, out, ccl.Sum) },
			}
		}
		sent := make([]float32, m.ranks*n)
		return move{
			in: m.whole(dim), out: m.shape(),
			floor: func(in, out []float32) error {
				for r := range m.ranks {
					copyRows(sent[r*n:], m.cols, in[r*m.cols:], wide, m.rows, m.cols)
				}
				return ccl.ReduceScatter(background, m.comm, sent, out, ccl.Sum)
			},
			want: func(yield func(stretch) bool) {
				for i := range m.rows {
					if !yield(stretch{i * m.cols, m.cols, m.sum, i*wide + m.rank*m.cols}) {
						return
					}
				}
			},
		}
	}
}
