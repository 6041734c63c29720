package ccl

import (
	"encoding"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/text"
)

// Every name can be formatted and parsed again, in flags and in JSON.
func TestTexts(t *testing.T) {
	var collective Collective
	var dtype DType
	var op Op
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
	require.EqualError(t, collective.UnmarshalText([]byte("allreduce")), `unknown collective "allreduce" (did you mean all_reduce?); use one of all_reduce, reduce, reduce_scatter, all_gather, broadcast, gather, scatter, all_to_all, scan, exscan`)
	require.EqualError(t, dtype.UnmarshalText([]byte("float")), `unknown dtype "float" (did you mean float32?); use one of uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64, float16, bfloat16, complex64, complex128, bool`)
	require.EqualError(t, op.UnmarshalText([]byte("SUM")), `unknown op "SUM" (did you mean sum?); use one of sum, avg, product, min, max, band, bor, bxor, land, lor, lxor`)
}

// A name of another library leads to the one that is meant.
func TestSynonyms(t *testing.T) {
	for wrong, right := range map[string]string{
		"fp16": "float16", "FP16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "double": "float64", "int": "int64", "long": "int64",
	} {
		require.ErrorContains(t, new(DType).UnmarshalText([]byte(wrong)), "unknown dtype "+strconv.Quote(wrong)+" (did you mean "+right+"?)")
	}
	for wrong, right := range map[string]string{"mean": "avg", "prod": "product", "maximum": "max", "xor": "bxor"} {
		require.ErrorContains(t, new(Op).UnmarshalText([]byte(wrong)), "(did you mean "+right+"?)")
	}
	for wrong, right := range map[string]string{"bcast": "broadcast", "reduce_scatter_tensor": "reduce_scatter", "all_gather_v": "all_gather"} {
		require.ErrorContains(t, new(Collective).UnmarshalText([]byte(wrong)), "(did you mean "+right+"?)")
	}
	for _, all := range []text.Synonyms{dtypeSynonyms, opSynonyms, collectiveSynonyms} {
		for wrong, right := range all {
			known := new(DType).UnmarshalText([]byte(right)) == nil || new(Op).UnmarshalText([]byte(right)) == nil || new(Collective).UnmarshalText([]byte(right)) == nil
			require.True(t, known, "%s: %s", wrong, right)
		}
	}
}

// A MismatchError has each value once, in the order in which ranks brought them.
func TestMismatchErrorValues(t *testing.T) {
	m := &MismatchError{Field: "shape"}
	for rank, value := range []string{"[2]", "[3]", "[2]", "none"} {
		m.add(MismatchValue{Value: value}, rank)
	}
	require.EqualError(t, m, "ranks disagree on shape: [2] on ranks 0, 2; [3] on rank 1; none on rank 3")
}
