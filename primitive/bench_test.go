package primitive_test

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

var benchRanks = flag.Int("ranks", 2, "ranks of BenchmarkOperators; under a launcher its number")

// benchmark is one direction of an operator in a fixed layout, and its floor: the same with what package ccl has,
// which is pack, one collective, and unpack.
type benchmark struct {
	name  string
	build func(world *partition.Partition) (primitive.Operator[float32], error)

	forward, adjoint func(m floor) direction
}

// direction is the shapes of a direction on this rank, and its floor.
type direction struct {
	in, out []int
	run     func(in, out []float32) error
}

// floor makes the floors of a rank.
type floor struct {
	comm       *ccl.Communicator
	rows, cols int // of this rank's part of the input of forward
}

var benchmarks = []benchmark{
	{"all_sum_reduce", func(world *partition.Partition) (primitive.Operator[float32], error) {
		return primitive.NewAllSumReduce[float32](bg, world, 0)
	}, floor.sumToAll, floor.sumToAll},
	{"broadcast", func(world *partition.Partition) (primitive.Operator[float32], error) {
		root, err := world.Inclusive(bg, []int{0})
		if err != nil {
			return nil, err
		}
		return primitive.NewBroadcast[float32](bg, root, world)
	}, floor.broadcast, floor.sumToRoot},
	{"repartition", func(world *partition.Partition) (primitive.Operator[float32], error) {
		rows, columns, err := both(world, all(world.Size(), 1), all(1, world.Size()))
		if err != nil {
			return nil, err
		}
		return primitive.NewRepartition[float32](bg, rows, columns)
	}, floor.rowsToColumns, floor.columnsToRows},
	{"halo_exchange", func(world *partition.Partition) (primitive.Operator[float32], error) {
		columns, err := all(1, world.Size()).make(world)
		if err != nil {
			return nil, err
		}
		return primitive.NewHaloExchange[float32](bg, columns, primitive.Halo{}, primitive.Halo{Left: 1, Right: 1})
	}, floor.fillGhosts, floor.addGhosts},
	{"all_gather_rows", func(world *partition.Partition) (primitive.Operator[float32], error) {
		return primitive.NewAllGather[float32](bg, world, 0, 0)
	}, floor.gatherRows, floor.scatterRows},
	{"all_gather_columns", func(world *partition.Partition) (primitive.Operator[float32], error) {
		return primitive.NewAllGather[float32](bg, world, 0, 1)
	}, floor.gatherColumns, floor.scatterColumns},
}

// BenchmarkOperators measures operators beside their floors, in turns: ns/op is the median of the operator, x-floor how
// many times as long as the floor it takes. On processes:
//
//	go test -c ./primitive
//	goccl run -n 2 -- ./primitive.test -test.run '^$' -test.bench Operators -test.benchtime 50x
func BenchmarkOperators(b *testing.B) {
	for _, o := range benchmarks {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"1MiB", 1 << 20}, {"16MiB", 16 << 20}} {
			b.Run(o.name+"/forward/"+size.name, func(b *testing.B) { benchOperator(b, o, size.bytes, true) })
			b.Run(o.name+"/adjoint/"+size.name, func(b *testing.B) { benchOperator(b, o, size.bytes, false) })
		}
	}
}

// benchOperator measures one direction on all ranks, and reports what rank 0 sees: from a barrier to the next one.
func benchOperator(b *testing.B, o benchmark, bytes int, forward bool) {
	var times [2][]time.Duration
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}
		world, err := partition.New(ctx, group.Communicator())
		if err != nil {
			return err
		}
		defer func() { _ = world.Close() }()
		op, err := o.build(world)
		if err != nil {
			return err
		}

		m := floor{comm: group.Communicator(), cols: 1024 * group.Size()}
		m.rows = bytes / 4 / m.cols / group.Size() * group.Size()
		d, call := o.forward(m), op.Forward
		if !forward {
			d, call = o.adjoint(m), op.Adjoint
		}
		in, out := primitive.NewTensor[float32](d.in...), primitive.NewTensor[float32](d.out...)
		contestants := [2]func() error{
			func() error { _, err := call(ctx, out, in); return err },
			func() error { return d.run(in.Data(), out.Data()) },
		}

		for range b.N {
			for i, run := range contestants {
				if err := m.comm.Barrier(ctx); err != nil {
					return err
				}
				start := time.Now()
				if err := run(); err != nil {
					return err
				}
				if err := m.comm.Barrier(ctx); err != nil {
					return err
				}
				if rank == 0 {
					times[i] = append(times[i], time.Since(start))
				}
			}
		}
		return nil
	}, dist.WithRanks(*benchRanks))
	if err != nil {
		b.Fatal(err)
	}

	if len(times[0]) > 0 { // this process has rank 0
		operator, below := median(times[0]), median(times[1])
		b.ReportMetric(float64(operator), "ns/op")
		b.ReportMetric(float64(operator)/float64(below), "x-floor")
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func (m floor) shape() []int { return []int{m.rows, m.cols} }

// onRoot returns the shape on rank 0, and that of a tensor without elements on others.
func (m floor) onRoot() []int {
	if m.comm.Rank() == 0 {
		return m.shape()
	}
	return []int{0}
}

// copyRows copies rows of n elements. The steps are the distances of the beginnings of rows.
func copyRows(to []float32, stepTo int, from []float32, stepFrom, rows, n int) {
	for i := range rows {
		copy(to[i*stepTo:][:n], from[i*stepFrom:])
	}
}

func (m floor) sumToAll() direction {
	return direction{m.shape(), m.shape(), func(in, out []float32) error {
		return ccl.AllReduce(bg, m.comm, in, out, ccl.Sum)
	}}
}

func (m floor) broadcast() direction {
	return direction{m.onRoot(), m.shape(), func(in, out []float32) error {
		copy(out, in)
		return ccl.Broadcast(bg, m.comm, out, 0)
	}}
}

func (m floor) sumToRoot() direction {
	return direction{m.shape(), m.onRoot(), func(in, out []float32) error {
		return ccl.Reduce(bg, m.comm, in, out, ccl.Sum, 0)
	}}
}

// rowsToColumns moves a tensor that is divided by rows, so that each rank gets its columns: received blocks are in order.
func (m floor) rowsToColumns() direction {
	n, ranks := m.cols/m.comm.Size(), m.comm.Size()
	sent := make([]float32, m.rows*m.cols)
	return direction{m.shape(), []int{ranks * m.rows, n}, func(in, out []float32) error {
		for r := range ranks {
			copyRows(sent[r*m.rows*n:], n, in[r*n:], m.cols, m.rows, n)
		}
		return ccl.AllToAll(bg, m.comm, sent, out)
	}}
}

func (m floor) columnsToRows() direction {
	n, ranks := m.cols/m.comm.Size(), m.comm.Size()
	received := make([]float32, m.rows*m.cols)
	return direction{[]int{ranks * m.rows, n}, m.shape(), func(in, out []float32) error {
		if err := ccl.AllToAll(bg, m.comm, in, received); err != nil {
			return err
		}
		for r := range ranks {
			copyRows(out[r*n:], m.cols, received[r*m.rows*n:], n, m.rows, n)
		}
		return nil
	}}
}

// swapColumns sends a column to each neighbour, and calls f with the column that the neighbour has sent. Even ranks begin
// with the neighbour on the right.
func (m floor) swapColumns(x []float32, onLeft, onRight int, f func(received []float32, isRight bool)) error {
	sent, received := make([]float32, m.rows), make([]float32, m.rows)
	isRight := m.comm.Rank()%2 == 0
	for range 2 {
		peer, column := m.comm.Rank()-1, onLeft
		if isRight {
			peer, column = m.comm.Rank()+1, onRight
		}
		if peer >= 0 && peer < m.comm.Size() {
			copyRows(sent, 1, x[column:], m.cols, m.rows, 1)
			if _, err := ccl.SendRecv(bg, m.comm, sent, peer, received, peer, 0); err != nil {
				return err
			}
			f(received, isRight)
		}
		isRight = !isRight
	}
	return nil
}

// fillGhosts copies the tensor, whose first and last columns are ghost cells, and fills these with the neighbours' columns.
func (m floor) fillGhosts() direction {
	return direction{m.shape(), m.shape(), func(in, out []float32) error {
		copy(out, in)
		return m.swapColumns(out, 1, m.cols-2, func(received []float32, isRight bool) {
			ghost := 0
			if isRight {
				ghost = m.cols - 1
			}
			copyRows(out[ghost:], m.cols, received, 1, m.rows, 1)
		})
	}}
}

// addGhosts copies the tensor, adds its ghost cells to the columns of the neighbours, and clears them.
func (m floor) addGhosts() direction {
	return direction{m.shape(), m.shape(), func(in, out []float32) error {
		copy(out, in)
		return m.swapColumns(out, 0, m.cols-1, func(received []float32, isRight bool) {
			inner, ghost := 1, 0
			if isRight {
				inner, ghost = m.cols-2, m.cols-1
			}
			for i, x := range received {
				out[i*m.cols+ghost] = 0
				out[i*m.cols+inner] += x
			}
		})
	}}
}

func (m floor) gatherRows() direction {
	return direction{m.shape(), []int{m.comm.Size() * m.rows, m.cols}, func(in, out []float32) error {
		return ccl.AllGather(bg, m.comm, in, out)
	}}
}

func (m floor) scatterRows() direction {
	return direction{[]int{m.comm.Size() * m.rows, m.cols}, m.shape(), func(in, out []float32) error {
		return ccl.ReduceScatter(bg, m.comm, in, out, ccl.Sum)
	}}
}

func (m floor) gatherColumns() direction {
	ranks := m.comm.Size()
	received := make([]float32, ranks*m.rows*m.cols)
	return direction{m.shape(), []int{m.rows, ranks * m.cols}, func(in, out []float32) error {
		if err := ccl.AllGather(bg, m.comm, in, received); err != nil {
			return err
		}
		for r := range ranks {
			copyRows(out[r*m.cols:], ranks*m.cols, received[r*m.rows*m.cols:], m.cols, m.rows, m.cols)
		}
		return nil
	}}
}

func (m floor) scatterColumns() direction {
	ranks := m.comm.Size()
	sent := make([]float32, ranks*m.rows*m.cols)
	return direction{[]int{m.rows, ranks * m.cols}, m.shape(), func(in, out []float32) error {
		for r := range ranks {
			copyRows(sent[r*m.rows*m.cols:], m.cols, in[r*m.cols:], ranks*m.cols, m.rows, m.cols)
		}
		return ccl.ReduceScatter(bg, m.comm, sent, out, ccl.Sum)
	}}
}
