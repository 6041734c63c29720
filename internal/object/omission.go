package object

import (
	"fmt"
	"math"
	"reflect"
)

// omission is what gob leaves out of a value and of its parts. The receiver restores it.
type omission struct {
	Step     step // to the value
	Pointers int  // so many pointers, one behind the other, are not nil
	Loss     loss // of the value behind them; 0: it is zero
	Parts    []omission
}

func (o *omission) isEmpty() bool { return o.Pointers == 0 && o.Loss == 0 && o.Parts == nil }

// loss is what gob leaves out of a value by itself.
type loss uint8

const (
	emptyList    loss = 1 + iota // arrives as nil
	nilMap                       // arrives as empty
	negativeZero                 // arrives as zero
)

var lossTexts = [...]string{"a pointer to zero", "empty but not nil", "nil", "a negative zero"}

// lossOf returns what gob leaves out of v.
func lossOf(v reflect.Value, isElement bool) loss {
	switch k := v.Kind(); {
	case k == reflect.Slice && v.Len() == 0 && !v.IsNil():
		return emptyList
	case k == reflect.Map && v.IsNil() && isElement:
		return nilMap
	case isElement:
		return 0
	case v.CanFloat() && v.Float() == 0 && math.Signbit(v.Float()),
		v.CanComplex() && v.Complex() == 0 && (math.Signbit(real(v.Complex())) || math.Signbit(imag(v.Complex()))):
		return negativeZero
	}
	return 0
}

// step leads from a value to a part of it. Pointers and interfaces need none.
type step struct {
	Name  string // of a field, or a key that is a string
	Index int64  // in a list, or a key that is an integer
	kind  stepKind
	key   reflect.Value
}

type stepKind uint8

const (
	inField stepKind = iota
	inList           // or the value in a map behind a key that is an integer
	inText           // or a string
	inKey            // a key, or the value behind a key of another kind: the receiver does not find it
)

// stepTo returns the step to the value behind a key.
func stepTo(key reflect.Value) step {
	switch {
	case key.Kind() == reflect.String:
		return step{kind: inText, Name: key.String()}
	case key.CanInt():
		return step{kind: inList, Index: key.Int()}
	case key.CanUint():
		return step{kind: inList, Index: int64(key.Uint())}
	}
	return step{kind: inKey, key: key}
}

// String returns the step as Go writes it.
func (s step) String() string {
	switch s.kind {
	case inField:
		return "." + s.Name
	case inText:
		return fmt.Sprintf("[%q]", s.Name)
	case inList:
		return fmt.Sprintf("[%d]", s.Index)
	}
	return fmt.Sprintf("[%v]", s.key)
}

// restore restores what was omitted of v, behind so many pointers.
func (o *omission) restore(v reflect.Value, pointers int) {
	switch k := v.Kind(); {
	case k == reflect.Pointer && (pointers > 0 || !v.IsNil()):
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		o.restore(v.Elem(), pointers-1)
		return
	case k == reflect.Interface && !v.IsNil():
		o.restoreCopy(v.Elem(), v.Set)
		return
	// What gob has left out.
	case k == reflect.Slice && o.Loss == emptyList && v.IsNil():
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case k == reflect.Map && o.Loss == nilMap:
		v.SetZero()
	case v.CanFloat() && o.Loss == negativeZero:
		v.SetFloat(math.Copysign(0, -1))
	}
	for i := range o.Parts {
		o.Parts[i].restoreIn(v)
	}
}

// restoreIn restores the part of v that the step leads to, if the receiver's type has it.
func (o *omission) restoreIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if part := v.FieldByName(o.Step.Name); part.CanSet() {
			o.restore(part, o.Pointers)
		}
	case reflect.Slice, reflect.Array:
		if o.Step.Index < int64(v.Len()) {
			o.restore(v.Index(int(o.Step.Index)), o.Pointers)
		}

	case reflect.Map:
		key := reflect.New(v.Type().Key()).Elem()
		switch {
		case key.Kind() == reflect.String:
			key.SetString(o.Step.Name)
		case key.CanInt():
			key.SetInt(o.Step.Index)
		case key.CanUint():
			key.SetUint(uint64(o.Step.Index))
		}

		if part := v.MapIndex(key); part.IsValid() {
			o.restoreCopy(part, func(part reflect.Value) { v.SetMapIndex(key, part) })
		}
	}
}

// restoreCopy restores a copy of v, and stores it.
func (o *omission) restoreCopy(v reflect.Value, store func(reflect.Value)) {
	part := reflect.New(v.Type()).Elem()
	part.Set(v)
	o.restore(part, o.Pointers)
	store(part)
}
