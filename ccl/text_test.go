package ccl

import (
	"encoding"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every name can be formatted and parsed again, in flags and in JSON.
func TestTexts(t *testing.T) {
	var collective Collective
	var dtype DType
	var op Op
	var size ByteSize
	again := func(v encoding.TextMarshaler, into encoding.TextUnmarshaler) {
		t.Helper()
		text, err := v.MarshalText()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(v), string(text))
		require.NoError(t, into.UnmarshalText(text))
	}
	for _, v := range Collectives() {
		again(v, &collective)
		require.Equal(t, v, collective)
	}
	for _, v := range DTypes() {
		again(v, &dtype)
		require.Equal(t, v, dtype)
	}
	for _, v := range Ops() {
		again(v, &op)
		require.Equal(t, v, op)
	}
	for _, v := range []ByteSize{0, 1, 4097, 64 << 10, 3 << 20, 1 << 40} {
		again(v, &size)
		require.Equal(t, v, size)
	}
	require.EqualError(t, collective.UnmarshalText([]byte("allreduce")), `unknown collective "allreduce" (did you mean all_reduce?); use one of all_reduce, reduce, reduce_scatter, all_gather, broadcast, gather, scatter, all_to_all, scan, exscan`)
	require.EqualError(t, dtype.UnmarshalText([]byte("float")), `unknown dtype "float" (did you mean float32?); use one of uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64, float16, bfloat16, complex64, complex128`)
	require.EqualError(t, op.UnmarshalText([]byte("SUM")), `unknown op "SUM" (did you mean sum?); use one of sum, avg, product, min, max, band, bor, bxor`)
	require.EqualError(t, size.UnmarshalText([]byte("4k")), `"4k" is not a size in bytes; write it like 64KiB, 1MiB, 2GiB or 4096`)
}

func TestByteSizeText(t *testing.T) {
	for text, size := range map[string]ByteSize{
		"0": 0, "1": 1, "1023": 1023, "1KiB": 1024, "1025": 1025, "64KiB": 64 << 10, "1MiB": 1 << 20,
		"1536KiB": 3 << 19, "1GiB": 1 << 30, "1024GiB": 1 << 40,
	} {
		require.Equal(t, text, size.String())
		var parsed ByteSize
		require.NoError(t, parsed.UnmarshalText([]byte(text)))
		require.Equal(t, size, parsed)
	}
	for _, text := range []string{"", "KiB", "-1", "-1KiB", "+1", " 1", "1 KiB", "01", "1kib", "1K", "1B", "1e3", "0x1", "8589934592GiB", "9223372036854775808"} {
		require.Error(t, new(ByteSize).UnmarshalText([]byte(text)), "%q", text)
	}
}
