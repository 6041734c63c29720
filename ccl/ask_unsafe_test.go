package ccl

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// ask sets every field of the request: no value of the previous call is left.
func TestAskSetsEveryField(t *testing.T) {
	in, out := bufferOf([]int32{1, 2}), bufferOf([]int32{3, 4})
	fresh, used := new(engine), new(engine)
	fill(t, reflect.ValueOf(&used.call.request).Elem())
	want := *fresh.ask(CollAllGather, Int32, in, out, nil)
	require.Equal(t, want, *used.ask(CollAllGather, Int32, in, out, nil))
}

// fill sets every field of a struct to a value other than zero.
func fill(t *testing.T, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("left over")
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Struct:
			fill(t, f)
		case reflect.Int, reflect.Int64:
			f.SetInt(99)
		case reflect.Uint8, reflect.Uint64:
			f.SetUint(99)
		default:
			t.Fatalf("fill does not know how to set a %v", f.Type())
		}
	}
}
