# shellcheck shell=bash
# Runs of Gradle 4.4, Maven 3.8 and Kotlin 1.3, as Debian 12 has them: gradle, maven, libmaven-compiler-plugin-java, kotlin. Read by record-problems.sh.
mvn_compile="mvn -o -B -ntp -Dmaven.repo.local=/usr/share/maven-repo -s /etc/maven/settings-debian.xml org.apache.maven.plugins:maven-compiler-plugin:3.10.1:compile"
broken_java() {
	file src/main/java/demo/A.java <<'END'
package demo;

public class A {
    int count = "many";

    int sum(int a, int b) {
        return a + c;
    }
}
END
}
fine_java() {
	file src/main/java/demo/A.java <<'END'
package demo;

public class A {
    int sum(int a, int b) {
        return a + b;
    }
}
END
}

project gradle-bad
file build.gradle <<<"apply plugin: 'java'"
broken_java
run gradle-bad gradle 'gradle --offline --no-daemon compileJava'
project gradle-ok
file build.gradle <<<"apply plugin: 'java'"
fine_java
run gradle-ok gradle 'gradle --offline --no-daemon compileJava'
project gradle-script
file build.gradle <<'END'
apply plugin: 'java'

dependencies {
    compileThis 'nothing'
}
END
run gradle-script gradle 'gradle --offline --no-daemon compileJava'
project gradle-syntax
file build.gradle <<'END'
apply plugin: 'java'
task hello {
    doLast { println 'hello'
}
END
run gradle-syntax gradle 'gradle --offline --no-daemon hello'

pom() {
	file pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>demo</groupId>
  <artifactId>demo</artifactId>
  <version>1.0</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
  </properties>
</project>
END
}
project maven-bad
pom
broken_java
run maven-bad mvn "$mvn_compile"
project maven-ok
pom
fine_java
run maven-ok mvn "$mvn_compile"
project maven-pom
file pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>demo</groupId>
  <artifactId>demo</artifact>
</project>
END
run maven-pom mvn "$mvn_compile"

project kotlin-bad
file App.kt <<'END'
fun main() {
    val count: Int = "many"
    println(missing)
}
END
run kotlin-bad kotlinc 'kotlinc App.kt -d app.jar'
project kotlin-warn
file App.kt <<'END'
fun main() {
    val unused = 1
    println("hello")
}
END
run kotlin-warn kotlinc 'kotlinc App.kt -d app.jar'
project kotlin-ok
file App.kt <<'END'
fun main() {
    println("hello")
}
END
run kotlin-ok kotlinc 'kotlinc App.kt -d app.jar'
