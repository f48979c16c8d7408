fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["task", "endpoint"].map(|name| format!("proto/tessera/v1/{name}.proto"));
    let protos = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(protos)?;
    println!("cargo:rerun-if-changed=proto");
    Ok(())
}
