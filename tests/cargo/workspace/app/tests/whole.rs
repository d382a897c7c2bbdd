#[test]
fn runs_in_the_folder_of_its_package() {
    assert!(std::path::Path::new("tests/whole.rs").exists());
}
