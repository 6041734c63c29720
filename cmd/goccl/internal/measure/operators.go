package measure

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// Operators stands for all operators in lists of collectives that programs expand; see OperatorNames.
const Operators = "operators"

// The directions of an operator, which are Case.Op.
const (
	Forward = "forward"
	Adjoint = "adjoint"
)

// operator is an operator of package primitive, in the layout in which it is measured.
type operator struct {
	name string
	// connect makes the operator. All ranks call it at the same time.
	connect          func(world *partition.Partition) (primitive.Operator[float32], error)
	forward, adjoint func(m mover) move
}

var operators = []operator{
	{"op_all_sum_reduce", allSumReduce, mover.sumToAll, mover.sumToAll},
	{"op_broadcast", broadcast, mover.spread, mover.collect},
	{"op_sum_reduce", sumReduce, mover.collect, mover.spread},
	{"op_repartition", repartition, mover.toColumns, mover.toRows},
	{"op_halo_exchange", haloExchange, mover.fillGhosts, mover.addGhosts},
	{"op_all_gather_dim0", allGather(0), gather(0), scatter(0)},
	{"op_all_gather_dim1", allGather(1), gather(1), scatter(1)},
	{"op_reduce_scatter_dim0", reduceScatter(0), ofPart(0, scatter(0)), ofPart(0, gather(0))},
	{"op_reduce_scatter_dim1", reduceScatter(1), ofPart(1, scatter(1)), ofPart(1, gather(1))},
}

// OperatorNames returns the names of the operators, in the order in which they are measured.
func OperatorNames() (names []string) {
	for _, o := range operators {
		names = append(names, o.name)
	}
	return names
}

// IsOperator reports whether a collective's name is an operator's.
func IsOperator(name string) bool { return slices.Contains(OperatorNames(), name) }

// operator returns the operator of the case, which is one.
func (c Case) operator() operator {
	return operators[slices.Index(OperatorNames(), c.Collective)]
}

// extents returns the shape of a nearly square tensor of about that many elements. Both extents are multiples of
// ranks, at least four times that, so that parts have the same shape, and more than ghost cells. A power of two keeps
// its elements.
func extents(elements, ranks int) (rows, cols int) {
	n := max(16, elements/(ranks*ranks))
	rows = 1 << ((bits.Len(uint(n)) - 1) / 2)
	return ranks * rows, ranks * (n / rows)
}

func allSumReduce(world *partition.Partition) (primitive.Operator[float32], error) {
	return primitive.NewAllSumReduce[float32](background, world, 0)
}

func broadcast(world *partition.Partition) (primitive.Operator[float32], error) {
	one, err := world.Inclusive(background, []int{0})
	if err != nil {
		return nil, err
	}
	return primitive.NewBroadcast[float32](background, one, world)
}

func sumReduce(world *partition.Partition) (primitive.Operator[float32], error) {
	one, err := world.Inclusive(background, []int{0})
	if err != nil {
		return nil, err
	}
	return primitive.NewSumReduce[float32](background, world, one)
}

func repartition(world *partition.Partition) (primitive.Operator[float32], error) {
	rows, err := world.Cartesian(background, world.Size(), 1)
	if err != nil {
		return nil, err
	}
	columns, err := world.Cartesian(background, 1, world.Size())
	if err != nil {
		return nil, err
	}
	return primitive.NewRepartition[float32](background, rows, columns)
}

func haloExchange(world *partition.Partition) (primitive.Operator[float32], error) {
	columns, err := world.Cartesian(background, 1, world.Size())
	if err != nil {
		return nil, err
	}
	return primitive.NewHaloExchange[float32](background, columns, primitive.Halo{}, primitive.Halo{Left: 1, Right: 1})
}

func allGather(dim int) func(*partition.Partition) (primitive.Operator[float32], error) {
	return func(world *partition.Partition) (primitive.Operator[float32], error) {
		return primitive.NewAllGather[float32](background, world, 0, dim)
	}
}

func reduceScatter(dim int) func(*partition.Partition) (primitive.Operator[float32], error) {
	return func(world *partition.Partition) (primitive.Operator[float32], error) {
		return primitive.NewReduceScatter[float32](background, world, 0, dim)
	}
}

// addOperator adds the contenders of a case that is an operator: its floor, barrier and core to core, and the operator.
func addOperator(b *bench[float32], _ []chosen) error {
	of := b.c.operator()
	world, err := partition.New(background, b.comm)
	if err != nil {
		return err
	}
	b.close = world.Close
	o, err := of.connect(world)
	if err != nil {
		return err
	}

	m := mover{comm: b.comm, rank: b.rank, ranks: b.c.Ranks, inputs: b.inputs, sum: b.reduced[b.c.Ranks-1]}
	m.rows, m.cols = extents(b.c.Count(), b.c.Ranks)
	call, made := o.Forward, of.forward(m)
	if b.c.Op == Adjoint {
		call, made = o.Adjoint, of.adjoint(m)
	}
	var in, out []*primitive.Tensor[float32] // of each bucket
	var data []buffers[float32]
	for i := range b.c.buckets() {
		in, out = append(in, primitive.NewTensor[float32](made.in...)), append(out, primitive.NewTensor[float32](made.out...))
		data = append(data, buffers[float32]{send: in[i].Data(), recv: out[i].Data()})
	}
	result := func() []float32 { return b.recv }
	wrong := func(phase int) (wrong int) {
		for s := range made.want {
			wrong += differing(b.recv[s.at:][:s.n], s.pattern, phase+s.offset)
		}
		return wrong
	}
	b.contenders = append(b.contenders, &contender[float32]{
		library: Yardstick, name: Floor, ranks: b.c.Ranks, parts: 1, buckets: data, result: result, wrong: wrong,
		run: func() error { return made.floor(b.send, b.recv) },
	})
	b.private = make([]buffers[float32], b.c.buckets())
	b.addSynchronisation()
	b.contenders = append(b.contenders, &contender[float32]{
		library: Library, ranks: b.c.Ranks, parts: 1, buckets: data, result: result, wrong: wrong,
		run: func() error {
			_, err := call(background, out[b.bucket], in[b.bucket])
			return err
		},
	})
	return nil
}

// CanMeasure returns an error if the job asks of operators what they do not have: they make their calls in
// groups of their own, without options, and have private memory.
func (j *Job) CanMeasure(collectives ...string) error {
	i := slices.IndexFunc(collectives, IsOperator)
	switch {
	case i < 0:
		return nil
	case len(j.variants()) > 1:
		return fmt.Errorf("%s is measured with one algorithm, and %d are to be compared", collectives[i], len(j.variants()))
	case slices.Contains(j.Memory, Alloc):
		return fmt.Errorf("%s is measured in %s memory only", collectives[i], Private)
	}
	return nil
}

// ofOperators returns an error if operators cannot be measured with the other values of the plan.
func (p *Plan) ofOperators() error {
	i := slices.IndexFunc(p.Collectives, IsOperator)
	if other := slices.IndexFunc(p.DTypes, func(name string) bool { return name != ccl.Float32.String() }); i >= 0 && other >= 0 {
		return fmt.Errorf("%s is measured with %v only", p.Collectives[i], ccl.Float32)
	}
	return nil
}
