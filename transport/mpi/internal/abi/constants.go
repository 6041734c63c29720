package abi

// DataType is a type of elements.
type DataType int

// Types of elements.
const (
	Byte DataType = iota
	Uint8
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Uint64
	Int64
	Float32
	Float64
	Complex64
	Complex128
	dataTypes // their number
)

// Op is an operation of a reduction.
type Op int

// Operations.
const (
	Sum Op = iota
	Product
	Min
	Max
	BAnd
	BOr
	BXor
	ops // their number
)

// AnySource receives from any rank.
const AnySource = -1 << 31

const success = 0

// levels are the numbers of MPI_THREAD_SINGLE, FUNNELED, SERIALIZED and MULTIPLE.
type levels [4]int32

func (l levels) multiple() int32 { return l[3] }

// constants are the handles and numbers of an ABI, from the headers of Open MPI 4.1.4 and MPICH 4.0.2. Open MPI 5.0's header has
// the same as 4.1's.
type constants struct {
	commWorld, errorsReturn uintptr
	types                   [dataTypes]uintptr
	ops                     [ops]uintptr
	inPlace                 uintptr
	anySource               int32
	source, tag             int // positions in the int32s of a status
	levels                  levels
}

// statusInts is the length of a status in int32s: 8 in the standard ABI, 6 with Open MPI, 5 with MPICH.
const statusInts = 8

// mpich are the constants of MPICH's ABI, which its relatives share.
var mpich = constants{
	commWorld:    0x44000000,
	errorsReturn: 0x54000001,
	types: [dataTypes]uintptr{
		Byte: 0x4c00010d, Uint8: 0x4c00013b, Int8: 0x4c000137, Uint16: 0x4c00023c, Int16: 0x4c000238,
		Uint32: 0x4c00043d, Int32: 0x4c000439, Uint64: 0x4c00083e, Int64: 0x4c00083a,
		Float32: 0x4c00040a, Float64: 0x4c00080b, Complex64: 0x4c000840, Complex128: 0x4c001041,
	},
	ops: [ops]uintptr{
		Sum: 0x58000003, Product: 0x58000004, Min: 0x58000002, Max: 0x58000001,
		BAnd: 0x58000006, BOr: 0x58000008, BXor: 0x5800000a,
	},
	inPlace:   ^uintptr(0),
	anySource: -2,
	source:    2,
	tag:       3,
	levels:    levels{0, 1, 2, 3},
}

// standard are the constants of the standard ABI, which libmpi_abi.so of any MPI has: MPI 5.0, chapter 20, as in mpi.h of
// github.com/mpi-forum/mpi-abi-stubs.
var standard = constants{
	commWorld:    0x101,
	errorsReturn: 0x143,
	types: [dataTypes]uintptr{
		Byte: 0x247, Uint8: 0x241, Int8: 0x240, Uint16: 0x249, Int16: 0x248,
		Uint32: 0x251, Int32: 0x250, Uint64: 0x259, Int64: 0x258,
		Float32: 0x210, Float64: 0x214, Complex64: 0x212, Complex128: 0x216,
	},
	ops: [ops]uintptr{
		Sum: 0x21, Product: 0x24, Min: 0x22, Max: 0x23,
		BAnd: 0x28, BOr: 0x29, BXor: 0x2a,
	},
	inPlace:   1,
	anySource: -1,
	source:    0,
	tag:       1,
	levels:    levels{0, 1024, 2048, 4096},
}

// openMPI returns the constants of Open MPI, whose handles are addresses of the library's variables.
func openMPI(symbol func(name string) (uintptr, error)) (c constants, err error) {
	c = constants{inPlace: 1, anySource: -1, source: 0, tag: 1, levels: levels{0, 1, 2, 3}}
	for name, handle := range map[string]*uintptr{
		"ompi_mpi_comm_world":       &c.commWorld,
		"ompi_mpi_errors_return":    &c.errorsReturn,
		"ompi_mpi_byte":             &c.types[Byte],
		"ompi_mpi_uint8_t":          &c.types[Uint8],
		"ompi_mpi_int8_t":           &c.types[Int8],
		"ompi_mpi_uint16_t":         &c.types[Uint16],
		"ompi_mpi_int16_t":          &c.types[Int16],
		"ompi_mpi_uint32_t":         &c.types[Uint32],
		"ompi_mpi_int32_t":          &c.types[Int32],
		"ompi_mpi_uint64_t":         &c.types[Uint64],
		"ompi_mpi_int64_t":          &c.types[Int64],
		"ompi_mpi_float":            &c.types[Float32],
		"ompi_mpi_double":           &c.types[Float64],
		"ompi_mpi_c_float_complex":  &c.types[Complex64],
		"ompi_mpi_c_double_complex": &c.types[Complex128],
		"ompi_mpi_op_sum":           &c.ops[Sum],
		"ompi_mpi_op_prod":          &c.ops[Product],
		"ompi_mpi_op_min":           &c.ops[Min],
		"ompi_mpi_op_max":           &c.ops[Max],
		"ompi_mpi_op_band":          &c.ops[BAnd],
		"ompi_mpi_op_bor":           &c.ops[BOr],
		"ompi_mpi_op_bxor":          &c.ops[BXor],
	} {
		if *handle, err = symbol(name); err != nil {
			return c, err
		}
	}
	return c, nil
}
