package abi

import "github.com/goccl/goccl/transport"

const success = 0

// levels are the numbers of MPI_THREAD_SINGLE, FUNNELED, SERIALIZED and MULTIPLE.
type levels [4]int32

func (l levels) multiple() int32 { return l[3] }

// types are the handles of types of elements.
type types [transport.Complex128 + 1]uintptr

// ops are the handles of operations.
type ops [transport.BXor + 1]uintptr

// constants are the handles and numbers of an ABI, from the headers of Open MPI 4.1.4 and MPICH
// 4.0.2. Open MPI 5.0's header has the same as 4.1's.
type constants struct {
	commWorld, errorsReturn uintptr
	types                   types
	byteType                uintptr // MPI_BYTE, of messages
	ops                     ops
	inPlace                 uintptr
	anySource               int32
	source, tag             int // positions in the int32s of a status
	levels                  levels
}

// statusInts is the length of a status in int32s: 8 in the standard ABI, 6 with Open MPI, 5 with
// MPICH.
const statusInts = 8

// mpich are the constants of MPICH's ABI, which its relatives share.
var mpich = constants{
	commWorld:    0x44000000,
	errorsReturn: 0x54000001,
	types: types{
		transport.Uint8: 0x4c00013b, transport.Int8: 0x4c000137, transport.Uint16: 0x4c00023c, transport.Int16: 0x4c000238,
		transport.Uint32: 0x4c00043d, transport.Int32: 0x4c000439, transport.Uint64: 0x4c00083e, transport.Int64: 0x4c00083a,
		transport.Float32: 0x4c00040a, transport.Float64: 0x4c00080b, transport.Complex64: 0x4c000840, transport.Complex128: 0x4c001041,
	},
	byteType: 0x4c00010d,
	ops: ops{
		transport.Sum: 0x58000003, transport.Product: 0x58000004, transport.Min: 0x58000002, transport.Max: 0x58000001,
		transport.BAnd: 0x58000006, transport.BOr: 0x58000008, transport.BXor: 0x5800000a,
	},
	inPlace:   ^uintptr(0),
	anySource: -2,
	source:    2,
	tag:       3,
	levels:    levels{0, 1, 2, 3},
}

// standard are the constants of the standard ABI, which libmpi_abi.so of any MPI has: MPI 5.0,
// chapter 20, as in mpi.h of github.com/mpi-forum/mpi-abi-stubs.
var standard = constants{
	commWorld:    0x101,
	errorsReturn: 0x143,
	types: types{
		transport.Uint8: 0x241, transport.Int8: 0x240, transport.Uint16: 0x249, transport.Int16: 0x248,
		transport.Uint32: 0x251, transport.Int32: 0x250, transport.Uint64: 0x259, transport.Int64: 0x258,
		transport.Float32: 0x210, transport.Float64: 0x214, transport.Complex64: 0x212, transport.Complex128: 0x216,
	},
	byteType: 0x247,
	ops: ops{
		transport.Sum: 0x21, transport.Product: 0x24, transport.Min: 0x22, transport.Max: 0x23,
		transport.BAnd: 0x28, transport.BOr: 0x29, transport.BXor: 0x2a,
	},
	inPlace:   1,
	anySource: -1,
	source:    0,
	tag:       1,
	levels:    levels{0, 1024, 2048, 4096},
}

// openMPI returns the constants of Open MPI, whose handles are addresses of the library's
// variables.
func openMPI(symbol func(name string) (uintptr, error)) (c constants, err error) {
	c = constants{inPlace: 1, anySource: -1, source: 0, tag: 1, levels: levels{0, 1, 2, 3}}
	for name, handle := range map[string]*uintptr{
		"ompi_mpi_comm_world":       &c.commWorld,
		"ompi_mpi_errors_return":    &c.errorsReturn,
		"ompi_mpi_byte":             &c.byteType,
		"ompi_mpi_uint8_t":          &c.types[transport.Uint8],
		"ompi_mpi_int8_t":           &c.types[transport.Int8],
		"ompi_mpi_uint16_t":         &c.types[transport.Uint16],
		"ompi_mpi_int16_t":          &c.types[transport.Int16],
		"ompi_mpi_uint32_t":         &c.types[transport.Uint32],
		"ompi_mpi_int32_t":          &c.types[transport.Int32],
		"ompi_mpi_uint64_t":         &c.types[transport.Uint64],
		"ompi_mpi_int64_t":          &c.types[transport.Int64],
		"ompi_mpi_float":            &c.types[transport.Float32],
		"ompi_mpi_double":           &c.types[transport.Float64],
		"ompi_mpi_c_float_complex":  &c.types[transport.Complex64],
		"ompi_mpi_c_double_complex": &c.types[transport.Complex128],
		"ompi_mpi_op_sum":           &c.ops[transport.Sum],
		"ompi_mpi_op_prod":          &c.ops[transport.Product],
		"ompi_mpi_op_min":           &c.ops[transport.Min],
		"ompi_mpi_op_max":           &c.ops[transport.Max],
		"ompi_mpi_op_band":          &c.ops[transport.BAnd],
		"ompi_mpi_op_bor":           &c.ops[transport.BOr],
		"ompi_mpi_op_bxor":          &c.ops[transport.BXor],
	} {
		if *handle, err = symbol(name); err != nil {
			return c, err
		}
	}
	return c, nil
}
