package object_test

import (
	"encoding/gob"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/object"
)

type pair struct {
	Left, Right *int
	Far         **int
	Word        *string
	Any         *any
}

type lists struct {
	Words  []string
	Rows   [][]float64
	Bytes  []byte
	Table  map[string][]int
	Counts map[int8]map[uint16]bool
	Deep   []map[string]*[]int
	Any    any
}

type signs struct {
	F    float64
	G    *float32
	Rows []struct{ F float32 }
}

type list struct {
	Value *int
	Next  *list
	Kids  []*list
}

type nest []nest

type sealed struct {
	Name   string
	secret int
}

type mute struct{ _ int }

type inner struct{ N int }

type embeds struct {
	inner
	Word string
}

type calls struct {
	Name string
	F    func()
	C    chan int
}

type known struct{ Words []string }

type pointed struct{ N int }

type stranger struct{ N int }

func init() {
	gob.Register(known{})
	gob.Register(&pointed{})
	gob.Register([]any{})
	gob.Register(map[string]any{})
}

// roundTrip returns what another rank gets.
func roundTrip[T any](obj T) (T, error) {
	data, err := object.Encode(obj)
	if err != nil {
		return *new(T), err
	}
	return object.Decode[T](data, 0)
}

// sameBits reports whether two values are the same, signs of zeros and nil included.
func sameBits(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	if !a.IsValid() {
		return true
	}
	switch a.Kind() {
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case reflect.Complex64, reflect.Complex128:
		p, q := a.Complex(), b.Complex()
		return math.Float64bits(real(p)) == math.Float64bits(real(q)) && math.Float64bits(imag(p)) == math.Float64bits(imag(q))
	case reflect.Pointer, reflect.Interface:
		return a.IsNil() == b.IsNil() && sameBits(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		if a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameBits(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if !sameBits(a.MapIndex(key), b.MapIndex(key)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameBits(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	if a.Kind() == reflect.Func || a.Kind() == reflect.Chan {
		return a.IsNil() && b.IsNil()
	}
	return a.Equal(b)
}

// keeps checks that another rank gets obj as it is.
func keeps[T any](t *testing.T, name string, obj T) {
	t.Run(name, func(t *testing.T) {
		got, err := roundTrip(obj)
		require.NoError(t, err)
		assert.True(t, sameBits(reflect.ValueOf(&obj), reflect.ValueOf(&got)), "%#v\narrives as\n%#v", obj, got)
	})
}

// What gob by itself leaves out arrives: pointers to zero values, lists that are empty but not nil,
// maps that are nil, and signs of zeros.
func TestKept(t *testing.T) {
	zero, word, null := 0, "", math.Copysign(0, -1)
	minus := float32(null)
	var nothing *int
	var none any
	at := &zero

	keeps(t, "pointer to zero", &zero)
	keeps(t, "pointers", pair{Left: &zero, Far: &at, Word: &word, Any: &none})
	keeps(t, "pointer to nil", pair{Right: &zero, Far: &nothing})
	keeps(t, "pointers in a list", []pair{{}, {Left: &zero}, {Word: &word}})
	keeps(t, "list of pointers", []*int{&zero, &zero})
	keeps(t, "pointer to an empty list", &[]int{})
	keeps(t, "pointer to a nil list", new([]int))
	keeps(t, "pointer to a nil map", new(map[string]int))
	keeps(t, "empty list", []string{})
	keeps(t, "nil list", []string(nil))
	keeps(t, "empty map", map[string]int{})
	keeps(t, "nil map", map[string]int(nil))
	keeps(t, "lists", lists{
		Words: []string{}, Bytes: []byte{}, Rows: [][]float64{nil, {}, {1}},
		Table:  map[string][]int{"": {}, "nil": nil, "x": {0}},
		Counts: map[int8]map[uint16]bool{-3: nil, 4: {}, 5: {7: false}},
		Deep:   []map[string]*[]int{nil, {}, {"x": {}}},
		Any:    []any{nil, []any{}, []any(nil), map[string]any{"e": []any{}, "m": map[string]any(nil)}, known{Words: []string{}}, &pointed{}},
	})
	keeps(t, "signs", signs{F: null, G: &minus, Rows: []struct{ F float32 }{{0}, {minus}}})
	keeps(t, "sign", null)
	keeps(t, "signs in a list", []float64{0, null})
	keeps(t, "array", [2][]int{{}, nil})
	keeps(t, "a linked list", list{Kids: []*list{{Value: &zero, Next: &list{Value: &zero, Kids: []*list{}}}}})
	keeps(t, "a list of its own type", nest{{}, nil, {{}}})
	keeps(t, "unexported fields that are zero", sealed{Name: "x"})
	keeps(t, "nil functions", calls{Name: "x"})
	keeps(t, "registered as a pointer", any(&pointed{3}))
	keeps(t, "an anonymous struct", struct{ Words []string }{[]string{}})

	shared := &list{Value: &zero}
	keeps(t, "shared parts", []*list{shared, {Next: shared, Kids: []*list{shared}}})

	number, err := roundTrip(*big.NewInt(1 << 40))
	require.NoError(t, err, "a method of the pointer encodes the value")
	assert.Equal(t, "1099511627776", number.String())
}

// What gob would lose in silence, or refuse in words of its own, is an error that has the path and
// the way out.
func TestRefused(t *testing.T) {
	zero := 0
	for _, refusal := range []struct {
		name   string
		encode func() error
		text   string
	}{
		{"an unexported field", encode([]map[string]sealed{nil, {"x": {secret: 7}}}),
			`encoding a []map[string]object_test.sealed: ([]map[string]object_test.sealed)[1]["x"].secret is not exported, and gob leaves it out: export it, leave it zero, or give object_test.sealed the methods GobEncode and GobDecode`},
		{"an embedded struct", encode(embeds{inner: inner{1}}), "object_test.embeds.inner is not exported"},
		{"a function", encode(&calls{F: func() {}}), "(*object_test.calls).F is a func(), and gob leaves it out: leave it nil, or give object_test.calls the methods"},
		{"a channel", encode(calls{C: make(chan int)}), "object_test.calls.C is a chan int, and gob leaves it out"},
		{"nil in a list", encode([]*int{&zero, nil}), "([]*int)[1] is a nil pointer, and gob writes none in lists, maps and interfaces: leave it out, or put it in a field of a struct"},
		{"nil in a map", encode(map[int]*sealed{4: nil}), "(map[int]*object_test.sealed)[4] is a nil pointer"},
		{"a nil number of any length", encode([]*big.Int{nil}), "([]*big.Int)[0] is a nil pointer"},
		{"nil in an interface", encode(any((*pointed)(nil))), "(interface {}) is a nil pointer"},
		{"an unregistered type", encode(map[string]any{"x": stranger{}}), `(map[string]interface {})["x"] is a object_test.stranger in an interface, and gob does not know that type: pass such a value to gob.Register on all ranks, once, in init`},
		{"an unregistered type behind a pointer", encode([]any{&stranger{}}), "([]interface {})[0] is a *object_test.stranger in an interface, and gob does not know that type"},
		{"registered without the pointer", encode([]any{&known{}}), "([]interface {})[0] is a *object_test.known, and would arrive as a object_test.known: gob.Register has that type"},
		{"registered with the pointer", encode([]any{pointed{}}), "([]interface {})[0] is a object_test.pointed, and would arrive as a *object_test.pointed: gob.Register has that type"},
		{"nothing exported", encode(map[string][]mute{}), "(map[string][]object_test.mute) holds a object_test.mute without exported fields: export what other ranks need, or give object_test.mute the methods GobEncode and GobDecode"},
		{"functions", encode(struct{ Steps []func() }{}), "(struct { Steps []func() }).Steps holds a func(), and gob cannot write that"},
		{"a function by itself", encode((func())(nil)), "(func()) holds a func(), and gob cannot write that"},
		{"a complex number", encode(struct{ C complex64 }{complex(0, float32(math.Copysign(0, -1)))}), "(struct { C complex64 }).C is a negative zero, which gob loses: avoid that in complex numbers"},
		{"no address", encode(map[string]big.Int{"x": *big.NewInt(1)}), `(map[string]big.Int)["x"] is a big.Int whose method of encoding belongs to the pointer: put a *big.Int there`},
	} {
		t.Run(refusal.name, func(t *testing.T) {
			assert.ErrorContains(t, refusal.encode(), refusal.text)
		})
	}
}

type (
	toItself *toItself
	toOther  *toSecond
	toSecond *toOther
)

// Pointers that lead to no value are refused, whether a type points to itself or to another that
// points back, also where the value is nil.
func TestPointersWithoutAnEnd(t *testing.T) {
	itself, first := new(toItself), new(toOther)
	*itself = itself
	second := toSecond(first)
	*first = &second
	for _, encode := range []func() error{
		encode(struct{ P toItself }{}), encode(struct{ P toItself }{itself}), encode(toItself(itself)), encode(any(toItself(nil))), encode(any(toItself(itself))),
		encode(struct{ P toOther }{}), encode(struct{ P toOther }{*first}), encode(*first), encode(any(toOther(nil))), encode(any(*first)), encode([]toSecond{second}),
	} {
		assert.ErrorContains(t, encode(), "a pointer that leads to pointers only, and gob cannot write that")
	}
}

func encode[T any](obj T) func() error {
	return func() error { _, err := object.Encode(obj); return err }
}

type anyKeys struct {
	Floats map[float64][]int
	Keys   map[struct{ F float64 }]int
}

// Maps whose keys are neither text nor integers cannot name what gob leaves out of their values, or
// out of a key.
func TestKeysOfMaps(t *testing.T) {
	keeps(t, "floats", anyKeys{Floats: map[float64][]int{1.5: {1}, 2.5: nil}})

	_, err := roundTrip(anyKeys{Floats: map[float64][]int{1.5: {}}})
	assert.ErrorContains(t, err, "object_test.anyKeys.Floats[1.5] is empty but not nil, which gob loses: avoid that in complex numbers, in keys of maps, and behind keys that are neither strings nor integers")

	_, err = roundTrip(anyKeys{Keys: map[struct{ F float64 }]int{{math.Copysign(0, -1)}: 1}})
	assert.ErrorContains(t, err, "object_test.anyKeys.Keys[{-0}].F is a negative zero, which gob loses")
}

// A rank whose type has other fields, kinds or pointers gets what its type can hold.
func TestOtherTypes(t *testing.T) {
	zero := 0
	type there struct {
		Rows  [][]float64
		Table map[string]*[]int
	}
	data, err := object.Encode(lists{Words: nil, Bytes: []byte{}, Rows: [][]float64{{}}, Table: map[string][]int{"x": {}}})
	require.NoError(t, err)
	got, err := object.Decode[there](data, 0)
	require.NoError(t, err)
	assert.Equal(t, [][]float64{{}}, got.Rows)
	assert.Len(t, got.Table, 1)

	data, err = object.Encode(pair{Left: &zero, Far: new(*int)})
	require.NoError(t, err)
	values, err := object.Decode[struct{ Left, Far int }](data, 0)
	require.NoError(t, err)
	assert.Zero(t, values)
}

// Random objects arrive as they are.
func TestRandomObjects(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type tree struct {
		A *int
		B **[]string
		C map[string]*tree
		D []tree
		E [2]map[int][]byte
		F signs
		G any
		H []map[string]bool
		I lists
	}
	for range 300 {
		var obj tree
		fill(random, reflect.ValueOf(&obj).Elem(), 0, false)
		got, err := roundTrip(obj)
		require.NoError(t, err)
		require.True(t, sameBits(reflect.ValueOf(obj), reflect.ValueOf(got)), "%#v", obj)
	}
}

// fill sets v to a random value. Pointers in lists and maps are not nil.
func fill(random *rand.Rand, v reflect.Value, depth int, isElement bool) {
	if !isElement && (depth > 6 || random.IntN(4) == 0) {
		return
	}
	length := random.IntN(3)
	if depth > 6 {
		length = 0
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem(), depth+1, isElement)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), length, length))
		for i := range length {
			fill(random, v.Index(i), depth+1, true)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(random, v.Index(i), depth+1, true)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range length {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(random, key, depth+1, true)
			fill(random, value, depth+1, true)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(random, v.Field(i), depth+1, false)
		}
	case reflect.Interface:
		values := []any{0, "", []any{}, []any(nil), map[string]any{"x": []any{}}, known{}, known{[]string{}}, &pointed{}}
		v.Set(reflect.ValueOf(values[random.IntN(len(values))]))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, math.Copysign(0, -1), 1}[random.IntN(3)])
	case reflect.Complex64:
		v.SetComplex([]complex128{0, 1i, 1}[random.IntN(3)])
	case reflect.Int, reflect.Int8:
		v.SetInt(int64(random.IntN(3) - 1))
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(uint64(random.IntN(3)))
	case reflect.String:
		v.SetString([]string{"", "a", "b"}[random.IntN(3)])
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	}
}
