package object

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// maxObjectDepth bounds the nesting of values in an object. Package gob recurses into
// each level, and a stack overflow ends the process.
const maxObjectDepth = 100_000

// walk visits the values that gob would encode. It returns an error for what gob cannot write or
// would lose, and notes in omitted what gob leaves out and the receiver restores.
type walk struct {
	root     reflect.Type // of the object
	types    map[reflect.Type]*typeInfo
	inside   map[reference]bool // the walk is in what is behind it
	path     []step             // from the object to the visited value
	pointers int                // followed since the last step
	omitted  omission           // of the visited value
}

// reference is what a pointer, map or slice refers to.
type reference struct {
	at  uintptr
	n   int
	typ reflect.Type
}

// visit visits v, at level at of the object. isElement: v is not the field of a struct, so gob
// writes it even if it is zero.
func (w *walk) visit(v reflect.Value, at int, isElement bool) error {
	if at > maxObjectDepth {
		return fmt.Errorf("it is more than %d values deep", maxObjectDepth)
	}
	info := w.infoOf(v.Type())
	if err := w.check(v, info, isElement); err != nil || info.isExternal || !info.isVisited {
		return err
	}
	isReference := v.Kind() == reflect.Pointer || v.Kind() == reflect.Map || v.Kind() == reflect.Slice
	if !isReference || v.IsNil() || !w.hasParts(v.Type()) {
		return w.visitParts(v, at, isElement)
	}

	p := reference{v.Pointer(), 0, v.Type()}
	if v.Kind() == reflect.Slice {
		p.n = v.Len()
	}
	if w.inside[p] {
		return fmt.Errorf("a %v in it holds itself, and gob cannot write that", v.Type())
	}
	w.inside[p] = true
	err := w.visitParts(v, at, isElement)
	delete(w.inside, p)
	return err
}

// visitParts visits what v consists of.
func (w *walk) visitParts(v reflect.Value, at int, isElement bool) (err error) {
	switch t := v.Type(); v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		pointers := w.pointers
		if w.pointers++; v.Kind() == reflect.Interface {
			w.pointers, isElement = 0, true
		}
		err = w.visit(v.Elem(), at+1, isElement)
		w.pointers = pointers

	case reflect.Slice, reflect.Array:
		for i := 0; w.hasParts(t) && i < v.Len() && err == nil; i++ {
			err = w.visitPart(step{kind: inList, Index: int64(i)}, v.Index(i), at+1, true)
		}
	case reflect.Map:
		for it := v.MapRange(); w.hasParts(t) && err == nil && it.Next(); {
			if err = w.visitPart(step{kind: inKey, key: it.Key()}, it.Key(), at+1, true); err == nil {
				err = w.visitPart(stepTo(it.Key()), it.Value(), at+1, true)
			}
		}

	case reflect.Struct:
		for _, f := range w.infoOf(t).fields {
			part, s := v.Field(f.index), step{Name: f.name}
			if f.loss == "" {
				err = w.visitPart(s, part, at+1, false)
			} else if !part.IsZero() {
				w.path = append(w.path, s)
				err = w.errorf("%s", f.loss)
			}

			if err != nil {
				break
			}
		}
	}
	return err
}

// visitPart visits a part of the visited value.
func (w *walk) visitPart(s step, part reflect.Value, at int, isElement bool) error {
	whole, pointers := w.omitted, w.pointers
	w.path, w.omitted, w.pointers = append(w.path, s), omission{Step: s}, 0

	err := w.visit(part, at, isElement)

	if !w.omitted.isEmpty() {
		whole.Parts = append(whole.Parts, w.omitted)
	}
	w.path, w.omitted, w.pointers = w.path[:len(w.path)-1], whole, pointers
	return err
}

// check returns an error if gob cannot write v itself or would change it, and notes what gob omits
// of v.
func (w *walk) check(v reflect.Value, info *typeInfo, isElement bool) error {
	t, k := v.Type(), v.Kind()
	switch {
	case k == reflect.Pointer && info.loss != "":
		return w.errorf("%s", info.loss)
	case k == reflect.Pointer && v.IsNil() && isElement:
		return w.errorf("is a nil pointer, and gob writes none in lists, maps and interfaces: leave it out, or put it in a field of a struct")
	case k == reflect.Pointer && !v.IsNil():
		return nil
	// Types that encode themselves, and values behind interfaces.
	case info.isExternal && k != reflect.Pointer:
		if !encodesItself(t) && !v.CanAddr() {
			return w.errorf("is a %v whose method of encoding belongs to the pointer: put a *%v there", t, t)
		}
		return nil
	case k == reflect.Interface && !v.IsNil():
		return w.checkArrival(v.Elem())
	case w.lossOf(t) != "":
		return w.errorf("%s", w.lossOf(t))
	}

	// Structs and arrays are written even if they are zero.
	lost := lossOf(v, isElement)
	isLeftOut := w.pointers > 0 && !isElement && k != reflect.Struct && k != reflect.Array && v.IsZero()
	if lost == 0 && !isLeftOut {
		return nil
	}
	isInKey := slices.ContainsFunc(w.path, func(s step) bool { return s.kind == inKey })
	if isInKey || v.CanComplex() && lost != 0 {
		return w.errorf("is %s, which gob loses: avoid that in complex numbers, in keys of maps, and behind keys that are neither strings nor integers", lossTexts[lost])
	}
	w.omitted.Loss, w.omitted.Pointers = lost, w.pointers
	return nil
}

// checkArrival returns an error if v, in an interface, does not arrive, or as another type.
func (w *walk) checkArrival(v reflect.Value) error {
	t := v.Type()
	if v.Kind() == reflect.Pointer && (v.IsNil() || w.infoOf(t).loss != "") {
		return nil // the visit of v reports it
	}
	switch arrives := w.arrival(v); arrives {
	case t:
		return nil
	case nil:
		return w.errorf("is a %v in an interface, and gob does not know that type: pass such a value to gob.Register on all ranks, once, in init", t)
	default:
		return w.errorf("is a %v, and would arrive as a %v: gob.Register has that type, so put that type there or register the other", t, arrives)
	}
}

// maxSteps bounds the steps of a path in an error.
const maxSteps = 12

// errorf returns an error about the visited value. It begins with the path to the value.
func (w *walk) errorf(format string, args ...any) error {
	text, path := w.root.String(), w.path
	if w.root.PkgPath() == "" {
		text = "(" + text + ")"
	}
	if n := len(path) - maxSteps; n > 0 {
		text, path = text+"...", path[n:]
	}
	for _, s := range path {
		text += s.String()
	}
	return errors.New(text + " " + fmt.Sprintf(format, args...))
}
