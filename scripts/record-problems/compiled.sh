# C, C++, Rust, Go, Java.
project gcc
file ok.c <<'X'
#include <stdio.h>
int main(void) { puts("error: this is only text, see main.c for more"); return 0; }
X
file bad.c <<'X'
#include <stdio.h>
#include "tools.h"
int main(void) {
	int unused;
	int n = "text";
	return missing(n)
}
X
file tools.h <<'X'
static int half(int n) { return n / 0; }
X
file noheader.c <<'X'
#include "nowhere.h"
int main(void) { return 0; }
X
file link.c <<'X'
int nowhere(void);
int main(void) { return nowhere(); }
X
file bad.cc <<'X'
#include <vector>
#include <string>
int main() {
  std::vector<int> v = {1, 2};
  std::string s = v;
  for (auto x : v) { x.size(); }
  return s;
}
X
file Makefile <<'X'
all: bad.o
bad.o: bad.c
	gcc -Wall -c bad.c
X
file good.mk <<'X'
all: ok
	./ok
ok: ok.c
	gcc -Wall -Werror -o ok ok.c
X
run gcc-bad gcc 'gcc -Wall -c bad.c'
run gcc-ok gcc 'gcc -Wall -Wextra -o ok ok.c && ./ok'
run gcc-noheader gcc 'gcc -c noheader.c'
run gcc-link gcc 'gcc link.c'
run gxx-bad g++ 'g++ -Wall -c bad.cc'
run clang-bad clang 'clang -Wall -c bad.c'
run clangxx-bad clang++ 'clang++ -c bad.cc'
run make-bad make 'make'
run make-missing make 'make -f nowhere.mk; make install'
run make-ok make 'rm -f ok; make -f good.mk'
project cmake
file CMakeLists.txt <<'X'
cmake_minimum_required(VERSION 3.10)
project(app C)
message(WARNING "old compiler")
add_executable(app main.c)
target_link_librarys(app m)
X
file main.c <<'X'
int main(void) { return 0; }
X
run cmake-bad cmake 'rm -rf b; cmake -S . -B b'
sed -i '/librarys/d; /WARNING/d' CMakeLists.txt
run cmake-ok cmake 'rm -rf b; cmake -S . -B b && cmake --build b'
project rust
file Cargo.toml <<'X'
[package]
name = "app"
version = "0.1.0"
edition = "2021"
X
file src/lib.rs <<'X'
pub mod shape;

pub fn half(n: i32) -> i32 {
    n / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        assert_eq!(half(4), 2);
    }

    #[test]
    fn doubles() {
        assert_eq!(half(4), 8, "half of four");
    }

    #[test]
    fn panics() {
        let none: Option<i32> = None;
        none.unwrap();
    }
}
X
file src/shape.rs <<'X'
pub fn area(w: u32, h: u32) -> u32 {
    w * h
}
X
run cargo-test-fails cargo 'cargo test'
sed -i '/fn doubles/,/^    }/d; /fn panics/,/^    }/d' src/lib.rs
sed -i 's/^    #\[test\]$//; s/^    fn halves/    #[test]\n    fn halves/' src/lib.rs
run cargo-test-ok cargo 'cargo test'
run cargo-build-ok cargo 'rm -rf target; cargo build'
file src/shape.rs <<'X'
pub fn area(w: u32, h: u32) -> u32 {
    let unused = 3;
    w * hight
}

pub fn name() -> String {
    "area"
}
X
run cargo-bad cargo 'cargo build'
run cargo-check-bad cargo 'cargo check --message-format short'
file src/shape.rs <<'X'
pub fn area(w: u32, h: u32) -> u32 {
    let unused = 3;
    w * h
}
fn never() {}
X
run cargo-warn cargo 'cargo build'
file src/shape.rs <<'X'
pub fn area(w: u32, h: u32) -> u32 {
    w * h
X
run cargo-syntax cargo 'cargo build'
file src/shape.rs <<'X'
pub fn area(w: u32, h: u32) -> u32 { w * h }
X
file src/main.rs <<'X'
fn main() {
    let v: Vec<i32> = Vec::new();
    println!("starting");
    println!("{}", v[3]);
}
X
run cargo-panic cargo 'cargo run -q'
file one.rs <<'X'
fn main() {
    let x: i32 = "a";
    let s = String::new();
    drop(s);
    println!("{}", s);
}
X
run rustc-bad rustc 'rustc one.rs'
project gopher
file go.mod <<'X'
module example.com/app

go 1.21
X
file main.go <<'X'
package main

import (
	"fmt"
	"os"
)

func main() {
	n := "text" + 3
	fmt.Println(missing)
}
X
file half/half.go <<'X'
package half

import "fmt"

// Half is half of n.
func Half(n int) int {
	fmt.Printf("%s\n", n)
	return n / 2
}
X
file half/half_test.go <<'X'
package half

import "testing"

func TestHalf(t *testing.T) {
	if got := Half(4); got != 3 {
		t.Errorf("Half(4) = %d, want 3", got)
	}
	if got := Half(6); got != 2 {
		t.Errorf("Half(6) = %d, want 2", got)
	}
}

func TestQuiet(t *testing.T) { t.Log("only a note") }

func TestSub(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Fatal("sub fails") })
}
X
run go-build-bad go 'go build ./...'
run go-vet-bad go 'go vet ./half'
sed -i 's/%s/%d/' half/half.go
run go-test-fails go 'go test -count=1 ./half'
run go-test-v-fails go 'go test -count=1 -v ./half'
file half/half_test.go <<'X'
package half

import "testing"

func TestHalf(t *testing.T) {
	t.Log("error: a note")
	var m map[string]int
	m["a"] = Half(3)
}
X
run go-test-panic go 'go test -count=1 ./half'
file half/half_test.go <<'X'
package half

import "testing"

func TestHalf(t *testing.T) {
	t.Log("half_test.go:3: not an error: a note")
	Half(3, 4)
}
X
run go-test-build go 'go test -count=1 ./half'
sed -i 's/Half(3, 4)/Half(3)/' half/half_test.go
run go-test-ok go 'go test -count=1 ./half'
run go-test-v-ok go 'go test -count=1 -v ./half'
file main.go <<'X'
package main

import "fmt"

func main() {
	fmt.Println("10:42:07 error: 0 warning: 0")
	var p *struct{ n int }
	fmt.Println(p.n)
}
X
run go-panic go 'go run .'
run go-panic-trimmed go 'go run -trimpath .'
sed -i '/p.n/d; s/var p.*/panicky := 3; _ = panicky/' main.go
run go-run-ok go 'go run .'
run go-build-ok go 'go build ./... && go vet ./...'
file main.go <<'X'
package main

import "example.com/nowhere"

func main() {
	fmt.Println("hello"
}
X
run go-syntax go 'go build .'
file main.go <<'X'
package main

import "example.com/app/nowhere"

func main() { nowhere.Do() }
X
run go-import go 'go build .'
project shop
file go.mod <<'X'
module example.com/shop

go 1.24
X
file cart/cart.go <<'X'
package cart

func Total(prices ...int) (sum int) {
	for _, p := range prices {
		sum += p
	}
	return sum + 1
}
X
file cart/cart_test.go <<'X'
package cart

import "testing"

func TestTotal(t *testing.T) {
	if got := Total(1, 2); got != 3 {
		t.Errorf("Total(1, 2) = %d, want 3", got)
	}
}
X
file internal/stock/stock.go <<'X'
package stock

var Left map[string]int

func Take(name string) { Left[name]-- }
X
file internal/stock/stock_test.go <<'X'
package stock

import "testing"

func TestTake(t *testing.T) {
	t.Run("pen", func(t *testing.T) { t.Error("no pen") })
}
X
file main.go <<'X'
package main

import "example.com/shop/internal/stock"

func main() { stock.Take("pen") }
X
run go-test-all go 'go test -count=1 ./...'
run go-test-v-all go 'go test -count=1 -v ./...'
run go-panic-package go 'go run .'
run go-panic-package-trimmed go 'go run -trimpath .'

project java
file App.java <<'X'
import java.util.List;

public class App {
    public static void main(String[] args) {
        int n = "text";
        List names = new java.util.ArrayList();
        names.add("x");
        missing();
    }
}
X
file Ok.java <<'X'
public class Ok {
    public static void main(String[] args) { System.out.println("App.java: error free"); }
}
X
file Boom.java <<'X'
public class Boom {
    static int half(int[] all) {
        return all[3];
    }

    public static void main(String[] args) {
        System.out.println(half(new int[1]));
    }
}
X
run javac-bad javac 'javac App.java'
run javac-lint javac 'sed -i s/missing.*// App.java; sed -i "s/= \"text\"/= 3/" App.java; javac -Xlint:all App.java'
run javac-ok javac 'javac Ok.java && java Ok'
run java-throws java 'javac Boom.java && java Boom'
